// Package lines is the conversation of these programs with tests/engines/shell.py: a JSON string a line comes in, and a line
// goes out for each, an object with rows, or with the error.
package lines

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
)

// Answer calls `answer` for each line of the standard input. It ends the process if a line can't be read or written.
func Answer(answer func(statement string) (any, error)) {
	if err := answerAll(answer); err != nil {
		Fail(err)
	}
}

// Fail prints an error and ends the process.
func Fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func answerAll(answer func(statement string) (any, error)) error {
	read := bufio.NewScanner(os.Stdin)
	for read.Scan() {
		var statement string
		if err := json.Unmarshal(read.Bytes(), &statement); err != nil {
			return err
		}
		rows, err := answer(statement)
		outcome := map[string]any{"rows": rows}
		if err != nil {
			outcome = map[string]any{"error": err.Error()}
		}
		if err := json.NewEncoder(os.Stdout).Encode(outcome); err != nil {
			return err
		}
	}
	return read.Err()
}
