import org.apache.iceberg.Schema;
import org.apache.iceberg.StructLike;
import org.apache.iceberg.expressions.Binder;
import org.apache.iceberg.expressions.BoundPredicate;
import org.apache.iceberg.expressions.Expression;
import org.apache.iceberg.expressions.ExpressionVisitors;
import org.apache.iceberg.expressions.Expressions;
import org.apache.iceberg.util.NaNUtil;

/**
 * Which rows a filter matches. Null and NaN equal nothing and stand in no order, as in scans, whereas Iceberg's evaluator of
 * rows takes null for the least value and NaN for the greatest: they match what is not equal, not in, and does not start with.
 */
final class RowFilter {
  private final Expression bound;

  RowFilter(Schema schema, Expression filter, boolean caseSensitive) {
    this.bound = Binder.bind(schema.asStruct(), Expressions.rewriteNot(filter), caseSensitive);
  }

  boolean matches(StructLike row) {
    return ExpressionVisitors.visit(bound, new Matches(row));
  }

  private static final class Matches extends ExpressionVisitors.ExpressionVisitor<Boolean> {
    private final StructLike row;

    Matches(StructLike row) {
      this.row = row;
    }

    @Override
    public Boolean alwaysTrue() {
      return true;
    }

    @Override
    public Boolean alwaysFalse() {
      return false;
    }

    @Override
    public Boolean and(Boolean left, Boolean right) {
      return left && right;
    }

    @Override
    public Boolean or(Boolean left, Boolean right) {
      return left || right;
    }

    @Override
    public <T> Boolean predicate(BoundPredicate<T> predicate) {
      T value = predicate.term().eval(row);
      return switch (predicate.op()) {
        case IS_NULL, NOT_NULL, IS_NAN, NOT_NAN -> predicate.asUnaryPredicate().test(value);
        case NOT_EQ, NOT_IN, NOT_STARTS_WITH -> unordered(value) || predicate.test(value);
        default -> !unordered(value) && predicate.test(value);
      };
    }

    private static boolean unordered(Object value) {
      return value == null || NaNUtil.isNaN(value);
    }
  }
}
