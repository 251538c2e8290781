package harness;

import com.azure.cosmos.CosmosClientBuilder;

/** The synchronous or the asynchronous client: scenarios are written once, for both. */
public interface Flavour {
    String name();

    Client connect(CosmosClientBuilder builder);
}
