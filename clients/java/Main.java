import harness.Blocking;
import harness.Flavour;
import harness.NonBlocking;
import harness.Runner;
import java.util.List;

/**
 * Exercises a Cosmos DB account through azure-cosmos, synchronous and asynchronous, in gateway mode.
 *
 * <p>Usage: Main ENDPOINT KEY [WORD]. With WORD, only the scenarios whose name contains it. Prints one line per
 * scenario and a total; exits with 1 when one failed.
 */
public final class Main {
    public static void main(String[] arguments) {
        if (arguments.length < 2 || arguments.length > 3) {
            System.err.println("usage: Main ENDPOINT KEY [WORD]");
            System.exit(2);
        }
        String only = arguments.length == 3 ? arguments[2] : "";
        List<Flavour> flavours = List.of(new Blocking(), new NonBlocking());
        // The SDK keeps threads; the program ends when its report is written.
        System.exit(Runner.run(flavours, arguments[0], arguments[1], only));
    }
}
