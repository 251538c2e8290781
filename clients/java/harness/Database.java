package harness;

import com.azure.cosmos.models.CosmosContainerProperties;
import com.azure.cosmos.models.CosmosContainerResponse;
import com.azure.cosmos.models.CosmosDatabaseResponse;
import com.azure.cosmos.models.CosmosUserProperties;
import com.azure.cosmos.models.CosmosUserResponse;
import com.azure.cosmos.models.SqlQuerySpec;
import com.azure.cosmos.models.ThroughputProperties;
import com.azure.cosmos.models.ThroughputResponse;
import java.util.List;

/** A database of either flavour. */
public interface Database {
    String id();

    CosmosDatabaseResponse read();

    CosmosDatabaseResponse delete();

    CosmosContainerResponse createContainer(CosmosContainerProperties properties, ThroughputProperties throughput);

    CosmosContainerResponse createContainerIfMissing(CosmosContainerProperties properties);

    List<CosmosContainerProperties> containers();

    List<CosmosContainerProperties> queryContainers(SqlQuerySpec query);

    Container container(String id);

    ThroughputResponse throughput();

    ThroughputResponse replaceThroughput(ThroughputProperties properties);

    CosmosUserResponse createUser(String id);

    List<CosmosUserProperties> users();

    CosmosUserResponse deleteUser(String id);
}
