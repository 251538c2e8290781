package harness;

import com.azure.cosmos.CosmosException;
import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.UUID;
import java.util.stream.IntStream;

/** Checks of a scenario: one that fails ends it. */
public final class Check {
    private Check() {}

    public static void check(boolean condition, Object otherwise) {
        if (!condition) {
            throw new AssertionError(otherwise);
        }
    }

    /** Compares two values as JSON text, so that 1 and 1.0 are the same number. */
    public static void equal(Object actual, Object expected, String what) {
        String found = text(actual);
        String wanted = text(expected);
        check(found.equals(wanted), what + ": expected " + wanted + ", found " + found);
    }

    private static String text(Object value) {
        JsonNode tree = Json.tree(value);
        if (tree.isNumber() && tree.doubleValue() == Math.rint(tree.doubleValue())) {
            return String.format("%.0f", tree.doubleValue());
        }
        return tree.toString();
    }

    /** The error of a call that has to be refused with {@code status}. */
    public static CosmosException fails(int status, Runnable call) {
        try {
            call.run();
        } catch (CosmosException error) {
            check(error.getStatusCode() == status, "expected " + status + ", found " + brief(error));
            return error;
        }
        throw new AssertionError("expected " + status + ", but it succeeded");
    }

    /** Status and message of an error, without the diagnostics. */
    public static String brief(Throwable error) {
        String message = error instanceof CosmosException refused
                ? refused.getStatusCode() + "/" + refused.getSubStatusCode() + " " + refused.getShortMessage()
                : error.toString();
        return message.substring(0, Math.min(message.length(), 900));
    }

    /** A name nothing else uses. */
    public static String name(String prefix) {
        return prefix + "-" + UUID.randomUUID().toString().substring(0, 13);
    }

    public static List<String> ids(Collection<? extends JsonNode> items) {
        return items.stream().map(item -> item.get("id").asText()).sorted().toList();
    }

    public static List<Integer> numbers(Collection<? extends JsonNode> rows) {
        return new ArrayList<>(rows.stream().map(JsonNode::asInt).toList());
    }

    public static List<Integer> sorted(Collection<? extends JsonNode> rows) {
        return rows.stream().map(JsonNode::asInt).sorted().toList();
    }

    public static List<Integer> range(int start, int end) {
        return IntStream.range(start, end).boxed().toList();
    }

    /** Waits for a point in time that cannot be asked for: the second in which something expires. */
    public static void sleep(long milliseconds) {
        try {
            Thread.sleep(milliseconds);
        } catch (InterruptedException interrupted) {
            throw new IllegalStateException(interrupted);
        }
    }
}
