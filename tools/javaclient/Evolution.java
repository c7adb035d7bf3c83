import org.apache.iceberg.Table;
import org.apache.iceberg.UpdatePartitionSpec;
import org.apache.iceberg.UpdateSchema;
import org.apache.iceberg.expressions.Expressions;
import org.apache.iceberg.expressions.Term;
import org.apache.iceberg.shaded.com.fasterxml.jackson.databind.JsonNode;
import org.apache.iceberg.types.Type;
import org.apache.iceberg.types.Types;

/** Changes of a table's schema and partition spec. Each is a list: a verb, a name, and its operands. */
final class Evolution {
  private Evolution() {}

  static void changeSchema(Table table, JsonNode changes) {
    UpdateSchema update = table.updateSchema();
    for (JsonNode change : changes) {
      String name = change.get(1).asText();
      switch (change.get(0).asText()) {
        case "add" -> update.addColumn(name, type(change.get(2)));
        case "drop" -> update.deleteColumn(name);
        case "rename" -> update.renameColumn(name, change.get(2).asText());
        case "promote" -> update.updateColumn(name, type(change.get(2)).asPrimitiveType());
        default -> throw new IllegalArgumentException("no such change: " + change);
      }
    }
    update.commit();
  }

  private static Type type(JsonNode json) {
    return Types.fromPrimitiveString(json.asText());
  }

  static void changeSpec(Table table, JsonNode changes) {
    UpdatePartitionSpec update = table.updateSpec();
    for (JsonNode change : changes) {
      String name = change.get(1).asText();
      switch (change.get(0).asText()) {
        case "add" -> update.addField(change.get(2).asText(), term(name, change.get(3).asText()));
        case "remove" -> update.removeField(name);
        case "rename" -> update.renameField(name, change.get(2).asText());
        default -> throw new IllegalArgumentException("no such change: " + change);
      }
    }
    update.commit();
  }

  /** A column under a transform such as {@code bucket[4]}. */
  private static Term term(String column, String transform) {
    int bracket = transform.indexOf('[');
    int width = bracket < 0 ? 0 : Integer.parseInt(transform.substring(bracket + 1, transform.length() - 1));
    return switch (bracket < 0 ? transform : transform.substring(0, bracket)) {
      case "identity" -> Expressions.ref(column);
      case "bucket" -> Expressions.bucket(column, width);
      case "truncate" -> Expressions.truncate(column, width);
      case "year" -> Expressions.year(column);
      case "month" -> Expressions.month(column);
      case "day" -> Expressions.day(column);
      case "hour" -> Expressions.hour(column);
      default -> throw new IllegalArgumentException("no such transform: " + transform);
    };
  }
}
