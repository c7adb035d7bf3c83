/**
 * A Trino server of a release whose own starter is not on Maven Central: {@code java TrinoServer VERSION}, with trino-main and
 * its dependencies on the class path, and Trino's properties as for that starter. Serves until it is killed.
 *
 * <p>The server's class is found by its name, so that an earlier JDK than Trino needs can compile this one.
 */
public final class TrinoServer {
  private TrinoServer() {}

  public static void main(String[] arguments) throws ReflectiveOperationException {
    Class<?> server = Class.forName("io.trino.server.Server");
    server.getMethod("start", String.class).invoke(server.getConstructor().newInstance(), arguments[0]);
  }
}
