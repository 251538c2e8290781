package harness;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.stream.Collectors;
import scenarios.All;

/** Runs scenarios, which are the public static methods of the classes in {@link All}, and reports. */
public final class Runner {
    private static final long SECONDS_PER_SCENARIO = 90;

    private Runner() {}

    /** Runs every scenario whose name contains {@code only}; returns the exit code of the program. */
    public static int run(List<Flavour> flavours, String endpoint, String key, String only) {
        int passed = 0;
        int failed = 0;
        ExecutorService threads = Executors.newCachedThreadPool();
        for (Flavour flavour : flavours) {
            try (Client client = flavour.connect(Account.builder(endpoint, key))) {
                for (Method scenario : scenarios()) {
                    String title = flavour.name() + " " + title(scenario);
                    if (!title.contains(only)) {
                        continue;
                    }
                    long started = System.nanoTime();
                    Future<?> run = threads.submit(() -> runOne(scenario, flavour, endpoint, key, client));
                    String failure = outcome(run);
                    if (failure == null) {
                        passed++;
                        long took = TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - started);
                        System.out.println("ok   " + title + " (" + took + " ms)");
                    } else {
                        failed++;
                        System.out.println("FAIL " + title + " " + failure);
                    }
                }
            }
        }
        System.out.println(passed + " passed, " + failed + " failed");
        return failed > 0 || passed == 0 ? 1 : 0;
    }

    private static List<Method> scenarios() {
        List<Method> found = new ArrayList<>();
        for (Class<?> subject : All.SUBJECTS) {
            Arrays.stream(subject.getDeclaredMethods())
                    .filter(method -> Modifier.isPublic(method.getModifiers()))
                    .sorted(Comparator.comparing(Method::getName))
                    .forEach(found::add);
        }
        return found;
    }

    private static String title(Method scenario) {
        return scenario.getName().replaceAll("([A-Z])", "_$1").toLowerCase();
    }

    private static Void runOne(Method scenario, Flavour flavour, String endpoint, String key, Client client)
            throws Exception {
        try (Account account = new Account(flavour, endpoint, key, client)) {
            scenario.invoke(null, account);
        }
        return null;
    }

    /** Why a scenario failed and where in this program; null if it did not. */
    private static String outcome(Future<?> run) {
        try {
            run.get(SECONDS_PER_SCENARIO, TimeUnit.SECONDS);
            return null;
        } catch (TimeoutException late) {
            run.cancel(true);
            return "still running after " + SECONDS_PER_SCENARIO + " s";
        } catch (ExecutionException error) {
            Throwable cause = error.getCause() instanceof InvocationTargetException invocation
                    ? invocation.getCause()
                    : error.getCause();
            return "at " + place(cause) + ": " + Check.brief(cause);
        } catch (InterruptedException interrupted) {
            return "interrupted";
        }
    }

    private static String place(Throwable error) {
        return Arrays.stream(error.getStackTrace())
                .filter(frame -> frame.getClassName().startsWith("scenarios."))
                .map(frame -> frame.getFileName() + ":" + frame.getLineNumber())
                .collect(Collectors.joining(" < "));
    }
}
