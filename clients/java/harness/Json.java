package harness;

import com.azure.cosmos.models.PartitionKey;
import com.azure.cosmos.models.PartitionKeyBuilder;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;

/** Items as JSON, and the partition keys of their values. */
public final class Json {
    private static final ObjectMapper MAPPER = new ObjectMapper();

    private Json() {}

    /** An item of members and values: {@code item("id", "1", "pk", "a")}. */
    public static ObjectNode item(Object... members) {
        ObjectNode item = MAPPER.createObjectNode();
        for (int at = 0; at < members.length; at += 2) {
            item.set((String) members[at], MAPPER.valueToTree(members[at + 1]));
        }
        return item;
    }

    /** JSON text with apostrophes in the place of quotation marks. */
    public static JsonNode parse(String text) {
        try {
            return MAPPER.readTree(text.replace('\'', '"'));
        } catch (JsonProcessingException error) {
            throw new IllegalArgumentException(text, error);
        }
    }

    public static JsonNode tree(Object value) {
        return MAPPER.valueToTree(value);
    }

    static PartitionKey key(ObjectNode item) {
        JsonNode value = item.get("pk");
        if (value == null) {
            return PartitionKey.NONE;
        }
        return key(MAPPER.convertValue(value, Object.class));
    }

    /** The partition key of one value. */
    public static PartitionKey key(Object value) {
        return value instanceof PartitionKey key ? key : new PartitionKey(value);
    }

    /** A hierarchical partition key, or a prefix of one. */
    public static PartitionKey keys(Object... values) {
        PartitionKeyBuilder builder = new PartitionKeyBuilder();
        for (Object value : values) {
            if (value == null) {
                builder.addNullValue();
            } else if (value instanceof String text) {
                builder.add(text);
            } else if (value instanceof Boolean flag) {
                builder.add(flag);
            } else {
                builder.add(((Number) value).doubleValue());
            }
        }
        return builder.build();
    }
}
