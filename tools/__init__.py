"""Programs that developers run besides the tests: benchmarks, the demo, builds of packages and generated files. No
package that ships imports them."""
