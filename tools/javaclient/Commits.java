import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.iceberg.BaseTransaction;
import org.apache.iceberg.DataFile;
import org.apache.iceberg.DataFiles;
import org.apache.iceberg.PartitionSpec;
import org.apache.iceberg.Schema;
import org.apache.iceberg.Table;
import org.apache.iceberg.Transaction;
import org.apache.iceberg.catalog.Namespace;
import org.apache.iceberg.catalog.TableCommit;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.rest.RESTCatalog;
import org.apache.iceberg.types.Types;

/**
 * Iceberg's own client at work: {@code java Commits.java URI WAREHOUSE STEP...}. A step is a verb and its operands,
 * joined by colons, such as {@code append:db.t:a}. For each it prints the step, a tab, and "done" or the class
 * of the exception, and goes on with the next. Data files are only named, never written.
 */
public final class Commits {
  private static final Schema SCHEMA = new Schema(Types.NestedField.optional(1, "id", Types.LongType.get()));

  private final RESTCatalog catalog;

  private Commits(RESTCatalog catalog) {
    this.catalog = catalog;
  }

  public static void main(String[] arguments) throws Exception {
    try (RESTCatalog catalog = new RESTCatalog()) {
      catalog.initialize("rest", Map.of("uri", arguments[0], "warehouse", arguments[1]));
      Commits commits = new Commits(catalog);
      for (String step : Arrays.asList(arguments).subList(2, arguments.length)) {
        System.out.println(step + "\t" + commits.outcome(step));
      }
    }
  }

  private String outcome(String step) {
    try {
      run(step.split(":"));
      return "done";
    } catch (RuntimeException failure) {
      failure.printStackTrace();
      return failure.getClass().getSimpleName();
    }
  }

  private void run(String[] words) {
    switch (words[0]) {
      case "namespace" -> catalog.createNamespace(Namespace.of(words[1]));
      case "describe" -> catalog.setProperties(Namespace.of(words[1]), new HashMap<>(Map.of(words[2], words[3])));
      case "create" -> catalog.createTable(name(words[1]), SCHEMA);
      case "append" -> table(words[1]).newAppend().appendFile(file(words[2])).commit();
      case "property" -> table(words[1]).updateProperties().set(words[2], words[3]).commit();
      case "column" -> table(words[1]).updateSchema().addColumn(words[2], Types.StringType.get()).commit();
      case "branch" -> table(words[1]).manageSnapshots().createBranch(words[2]).commit();
      case "transaction" -> appended(table(words[1]).newTransaction(), words[2]).commitTransaction();
      case "create-with" -> appended(catalog.newCreateTableTransaction(name(words[1]), SCHEMA), words[2]).commitTransaction();
      case "replace-with" -> appended(replacing(name(words[1])), words[2]).commitTransaction();
      case "append-both" -> appendBoth(name(words[1]), name(words[2]), words[3]);
      case "rename" -> catalog.renameTable(name(words[1]), name(words[2]));
      case "drop" -> catalog.dropTable(name(words[1]), false);
      case "view" -> catalog.buildView(name(words[1])).withSchema(SCHEMA).withDefaultNamespace(Namespace.of("db"))
          .withQuery("spark", "SELECT 1 AS id").create();
      default -> throw new IllegalArgumentException("no such step: " + String.join(":", words));
    }
  }

  /** One request that changes two tables. */
  private void appendBoth(TableIdentifier first, TableIdentifier second, String file) {
    catalog.commitTransaction(List.of(change(first, file), change(second, file)));
  }

  private TableCommit change(TableIdentifier name, String file) {
    BaseTransaction transaction = (BaseTransaction) appended(catalog.loadTable(name).newTransaction(), file);
    return TableCommit.create(name, transaction.startMetadata(), transaction.currentMetadata());
  }

  private Transaction replacing(TableIdentifier name) {
    return catalog.newReplaceTableTransaction(name, SCHEMA, PartitionSpec.unpartitioned(), Map.of(), false);
  }

  private static Transaction appended(Transaction transaction, String file) {
    transaction.newAppend().appendFile(file(file)).commit();
    return transaction;
  }

  private static DataFile file(String name) {
    return DataFiles.builder(PartitionSpec.unpartitioned())
        .withPath("file:///nowhere/" + name + ".parquet").withFileSizeInBytes(10).withRecordCount(1).build();
  }

  private Table table(String name) {
    return catalog.loadTable(name(name));
  }

  private static TableIdentifier name(String dotted) {
    return TableIdentifier.parse(dotted);
  }
}
