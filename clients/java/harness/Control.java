package harness;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/** The control port of `peri up`, which {@code clients/run} names in PERI_CONTROL. */
public final class Control {
    private static final String PORT = System.getenv().getOrDefault("PERI_CONTROL", "").replaceAll("/$", "");
    private static final HttpClient HTTP = HttpClient.newHttpClient();

    private Control() {}

    public static boolean isThere() {
        return !PORT.isEmpty();
    }

    /** The names of the account's regions, the write region first; none without a control port. */
    public static List<String> regions() {
        List<String> names = new ArrayList<>();
        if (isThere()) {
            for (JsonNode region : Json.tree(send("/topology", null)).get("regions")) {
                names.add(region.get("writes").asBoolean() ? 0 : names.size(), region.get("name").asText());
            }
        }
        return names;
    }

    /** Does something to a region: down, up, drain, failover. */
    public static void region(String name, String change, String details) {
        send("/regions/" + URLEncoder.encode(name, StandardCharsets.UTF_8).replace("+", "%20") + "/" + change, details);
    }

    private static JsonNode send(String path, String body) {
        HttpRequest.Builder request = HttpRequest.newBuilder(URI.create(PORT + path));
        if (body != null) {
            request.header("content-type", "application/json").POST(HttpRequest.BodyPublishers.ofString(body));
        }
        try {
            HttpResponse<String> response = HTTP.send(request.build(), HttpResponse.BodyHandlers.ofString());
            Check.check(response.statusCode() < 300, path + ": " + response.statusCode() + " " + response.body());
            return Json.parse(response.body().isEmpty() ? "{}" : response.body());
        } catch (IOException | InterruptedException error) {
            throw new IllegalStateException(path, error);
        }
    }
}
