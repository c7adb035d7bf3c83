import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import org.apache.iceberg.shaded.com.fasterxml.jackson.databind.JsonNode;
import org.apache.iceberg.shaded.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.iceberg.shaded.com.fasterxml.jackson.databind.node.ObjectNode;

/** A program that reads a JSON object a line from its standard input, and prints a JSON object a line for each. */
final class JsonLines {
  static final ObjectMapper JSON = new ObjectMapper();

  private JsonLines() {}

  /** Returns the answer to a request. */
  interface Handler {
    ObjectNode answer(JsonNode request) throws Exception;
  }

  /**
   * Answers requests until there are no more. One that fails is answered by {@code error}, the exception's class and
   * message.
   */
  static void serve(Handler handler) throws IOException {
    PrintStream answers = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    System.setOut(System.err); // loggers may print
    BufferedReader requests = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = requests.readLine(); line != null; line = requests.readLine()) {
      ObjectNode answer;
      try {
        answer = handler.answer(JSON.readTree(line));
      } catch (Exception failure) {
        answer = JSON.createObjectNode();
        answer.put("error", failure.getClass().getSimpleName() + ": " + failure.getMessage());
      }
      answers.println(JSON.writeValueAsString(answer));
    }
  }
}
