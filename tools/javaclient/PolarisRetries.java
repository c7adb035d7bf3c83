import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.time.Instant;
import java.util.UUID;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Sends requests as Polaris's proposal of idempotency keys has clients do it: one random UUID for each, sent again with the
 * same request after a 5xx, for as long as the catalog says. Arguments are the catalog's URI, and a path and a body of each
 * request; a line for each has the status of its answer, the answer itself, and how often it was sent.
 */
public final class PolarisRetries {
    private static final int MOST_ATTEMPTS = 20;
    private static final Pattern PROPERTIES = Pattern.compile("\"properties\":\\{([^}]*)\\}");
    private static int attempts;

    private PolarisRetries() {}

    public static void main(String[] arguments) throws Exception {
        HttpClient client = HttpClient.newHttpClient();
        String uri = arguments[0];
        Duration lifetime = discovered(client, uri);
        for (int place = 1; place < arguments.length; place += 2) {
            HttpResponse<String> response = postWithIdempotencyRetry(
                client, URI.create(uri + arguments[place]), arguments[place + 1], lifetime, MOST_ATTEMPTS);
            System.out.println(response.statusCode() + "\t" + response.body() + "\t" + attempts);
        }
    }

    /** How long a key may be sent again. Both properties must be there, or nothing is sent again. */
    private static Duration discovered(HttpClient client, String uri) throws Exception {
        HttpRequest request = HttpRequest.newBuilder(URI.create(uri + "/v1/config")).build();
        Matcher properties = PROPERTIES.matcher(client.send(request, HttpResponse.BodyHandlers.ofString()).body());
        if (!properties.find() || !"true".equals(value(properties.group(1), "idempotency-key-supported"))) {
            throw new IllegalStateException("The catalog takes no idempotency keys");
        }
        return Duration.parse(value(properties.group(1), "idempotency-key-lifetime"));
    }

    private static String value(String properties, String name) {
        Matcher found = Pattern.compile("\"" + name + "\":\"([^\"]*)\"").matcher(properties);
        return found.find() ? found.group(1) : "";
    }

    private static HttpResponse<String> postWithIdempotencyRetry(
            HttpClient client, URI url, String payloadJson, Duration lifetime, int maxAttempts) throws Exception {
        String key = UUID.randomUUID().toString();
        Instant firstAttempt = Instant.now();
        for (attempts = 1; attempts <= maxAttempts; attempts++) {
            HttpRequest request = HttpRequest.newBuilder(url)
                .header("Content-Type", "application/json")
                .header("Idempotency-Key", key)
                .POST(HttpRequest.BodyPublishers.ofString(payloadJson))
                .build();
            HttpResponse<String> response = client.send(request, HttpResponse.BodyHandlers.ofString());
            int code = response.statusCode();
            if (code == 200 || code == 201 || code == 204) {
                return response;
            }
            if (code == 409) { // request_in_progress
                Thread.sleep(200L);
                continue;
            }
            if (code == 422) { // idempotency_key_conflict
                throw new IllegalStateException("The key was used for another payload");
            }
            boolean inTime = Duration.between(firstAttempt, Instant.now()).compareTo(lifetime) <= 0;
            if (code >= 500 && inTime) {
                continue;
            }
            throw new IllegalStateException("Request failed: " + code + " " + response.body());
        }
        throw new IllegalStateException("No attempt is left");
    }
}
