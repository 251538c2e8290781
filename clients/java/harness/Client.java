package harness;

import com.azure.cosmos.models.CosmosDatabaseProperties;
import com.azure.cosmos.models.CosmosDatabaseResponse;
import com.azure.cosmos.models.SqlQuerySpec;
import com.azure.cosmos.models.ThroughputProperties;
import java.util.List;

/** A client of either flavour. Calls return when the response is there. */
public interface Client extends AutoCloseable {
    CosmosDatabaseResponse createDatabase(String id, ThroughputProperties throughput);

    CosmosDatabaseResponse createDatabaseIfMissing(String id);

    List<CosmosDatabaseProperties> databases();

    List<CosmosDatabaseProperties> queryDatabases(SqlQuerySpec query);

    Database database(String id);

    @Override
    void close();
}
