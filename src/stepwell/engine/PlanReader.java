// Reads Spark's analyzed plans: as text that loses nothing, subqueries as joins, and compares two of them.
// Compiled at its first use by Janino, which Spark ships for the code that it generates; CLASS_NAME is filled in.

import java.util.ArrayList;
import java.util.IdentityHashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

import org.apache.spark.sql.catalyst.analysis.DeduplicateRelations$;
import org.apache.spark.sql.catalyst.analysis.EliminateSubqueryAliases$;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.CommonExpressionDef;
import org.apache.spark.sql.catalyst.expressions.CommonExpressionRef;
import org.apache.spark.sql.catalyst.expressions.CreateArray;
import org.apache.spark.sql.catalyst.expressions.CreateNamedStruct;
import org.apache.spark.sql.catalyst.expressions.EqualNullSafe;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GetStructField;
import org.apache.spark.sql.catalyst.expressions.If;
import org.apache.spark.sql.catalyst.expressions.Inline;
import org.apache.spark.sql.catalyst.expressions.KnownNullable;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.MicrosToTimestamp;
import org.apache.spark.sql.catalyst.expressions.PreciseTimestampConversion;
import org.apache.spark.sql.catalyst.expressions.UnixMicros;
import org.apache.spark.sql.catalyst.expressions.With;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.RuntimeReplaceable;
import org.apache.spark.sql.catalyst.expressions.InheritAnalysisRules;
import org.apache.spark.sql.catalyst.expressions.RuntimeReplaceable;
import org.apache.spark.sql.catalyst.expressions.RuntimeReplaceableAggregate;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.First;
import org.apache.spark.sql.catalyst.expressions.aggregate.PivotFirst;
import org.apache.spark.sql.catalyst.optimizer.EliminateResolvedHint$;
import org.apache.spark.sql.catalyst.optimizer.InlineCTE;
import org.apache.spark.sql.catalyst.optimizer.BooleanSimplification$;
import org.apache.spark.sql.catalyst.optimizer.CollapseProject$;
import org.apache.spark.sql.catalyst.optimizer.ColumnPruning$;
import org.apache.spark.sql.catalyst.optimizer.RemoveRedundantAliases$;
import org.apache.spark.sql.catalyst.optimizer.RemoveNoopOperators$;
import org.apache.spark.sql.catalyst.optimizer.ReplaceExpressions$;
import org.apache.spark.sql.catalyst.optimizer.OptimizeOneRowRelationSubquery$;
import org.apache.spark.sql.catalyst.optimizer.PushPredicateThroughNonJoin$;
import org.apache.spark.sql.catalyst.optimizer.PullOutNestedDataOuterRefExpressions$;
import org.apache.spark.sql.catalyst.optimizer.PullupCorrelatedPredicates$;
import org.apache.spark.sql.catalyst.optimizer.RewriteCorrelatedScalarSubquery$;
import org.apache.spark.sql.catalyst.optimizer.RewriteLateralSubquery$;
import org.apache.spark.sql.catalyst.optimizer.RewritePredicateSubquery$;
import org.apache.spark.sql.catalyst.plans.ExistenceJoin;
import org.apache.spark.sql.catalyst.plans.JoinType;
import org.apache.spark.sql.catalyst.plans.QueryPlan;
import org.apache.spark.sql.catalyst.expressions.EliminatePipeOperators$;
import org.apache.spark.sql.catalyst.plans.logical.Expand;
import org.apache.spark.sql.catalyst.plans.logical.Generate;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Union;
import org.apache.spark.sql.catalyst.plans.logical.View;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.catalyst.trees.TreePattern;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Metadata;

public class CLASS_NAME {
  private static final int PIECE = 8000;
  private StringBuilder out = new StringBuilder();

  // -- reading ------------------------------------------------------------------------------------------------------

  /** Writes a plan as JSON and returns how many pieces it has; `piece` fetches them. */
  public int read(Object plan) {
    out = new StringBuilder();
    node((TreeNode) plan);
    return (out.length() + PIECE - 1) / PIECE;
  }

  public String piece(int index) {
    return out.substring(index * PIECE, Math.min(out.length(), (index + 1) * PIECE));
  }

  private void node(TreeNode tree) {
    List children = listed(tree.children());
    IdentityHashMap places = new IdentityHashMap();
    for (int i = 0; i < children.size(); i++) {
      places.put(children.get(i), new Integer(i));
    }
    out.append("{\"is\":");
    text(simpleName(tree));
    if (tree instanceof LogicalPlan) {
      out.append(",\"output\":");
      attributes(((LogicalPlan) tree).output());
    }
    if (tree instanceof View) {
      out.append(",\"name\":");
      text(((View) tree).desc().identifier().table());
      out.append("}");
      return;
    }
    if (tree instanceof LocalRelation) {
      LocalRelation local = (LocalRelation) tree;
      out.append(",\"rows\":");
      rows(local);
      out.append("}");
      return;
    }
    if (tree instanceof Expression) {
      expression((Expression) tree);
    }
    out.append(",\"fields\":{");
    int count = tree.productArity();
    for (int i = 0; i < count; i++) {
      if (i > 0) {
        out.append(",");
      }
      text(tree.productElementName(i));
      out.append(":");
      value(tree.productElement(i), places, 0);
    }
    out.append("},\"children\":[");
    for (int i = 0; i < children.size(); i++) {
      if (i > 0) {
        out.append(",");
      }
      node((TreeNode) children.get(i));
    }
    out.append("]}");
  }

  private void expression(Expression each) {
    try {
      DataType type = each.dataType();
      out.append(",\"type\":");
      text(type.asNullable().sql());
      out.append(",\"nullable\":").append(each.nullable());
    } catch (Throwable none) {
      out.append(",\"type\":null");
    }
    out.append(",\"deterministic\":").append(each.deterministic());
    out.append(",\"pretty\":");
    text(each.prettyName());
    if (each instanceof Literal) {
      out.append(",\"sql\":");
      text(each.sql());
    }
    if (each instanceof GetStructField) {
      out.append(",\"field\":");
      text(((GetStructField) each).extractFieldName());
    }
    if (each instanceof NamedExpression) {
      NamedExpression named = (NamedExpression) each;
      try {
        out.append(",\"id\":").append(named.exprId().id());
        Metadata metadata = named.metadata();
        if (metadata != null && !metadata.json().equals("{}")) {
          out.append(",\"metadata\":");
          text(metadata.json());
        }
      } catch (Throwable unresolved) {
      }
    }
    if (each instanceof SubqueryExpression) {
      scala.Option most = ((LogicalPlan) ((SubqueryExpression) each).plan()).maxRows();
      out.append(",\"most\":").append(most.isEmpty() ? "null" : most.get().toString());
    }
    if (each instanceof InheritAnalysisRules) {
      out.append(",\"parameters\":[");
      List parameters = listed(((InheritAnalysisRules) each).parameters());
      for (int i = 0; i < parameters.size(); i++) {
        if (i > 0) {
          out.append(",");
        }
        node((TreeNode) parameters.get(i));
      }
      out.append("]");
    }
  }

  private void attributes(Object output) {
    List each = listed(output);
    out.append("[");
    for (int i = 0; i < each.size(); i++) {
      Attribute attribute = (Attribute) each.get(i);
      if (i > 0) {
        out.append(",");
      }
      out.append("[").append(attribute.exprId().id()).append(",");
      text(attribute.name());
      out.append(",");
      text(attribute.dataType().asNullable().sql());
      out.append(",").append(attribute.nullable()).append("]");
    }
    out.append("]");
  }

  private void rows(LocalRelation local) {
    List output = listed(local.output());
    List data = listed(local.data());
    out.append("[");
    for (int i = 0; i < data.size(); i++) {
      if (i > 0) {
        out.append(",");
      }
      out.append("[");
      org.apache.spark.sql.catalyst.InternalRow row = (org.apache.spark.sql.catalyst.InternalRow) data.get(i);
      for (int j = 0; j < output.size(); j++) {
        if (j > 0) {
          out.append(",");
        }
        DataType type = ((Attribute) output.get(j)).dataType();
        Object held = row.isNullAt(j) ? null : row.get(j, type);
        node(new Literal(held, type));
      }
      out.append("]");
    }
    out.append("]");
  }

  private void value(Object held, IdentityHashMap places, int depth) {
    if (held == null) {
      out.append("null");
    } else if (places.containsKey(held)) {
      out.append("{\"child\":").append(places.get(held)).append("}");
    } else if (held instanceof scala.Option) {
      scala.Option option = (scala.Option) held;
      value(option.isEmpty() ? null : option.get(), places, depth);
    } else if (held instanceof TreeNode) {
      node((TreeNode) held);
    } else if (held instanceof DataType) {  // before the lists: a struct is a list of its fields, too
      out.append("{\"type\":");
      text(((DataType) held).sql());
      out.append("}");
    } else if (held instanceof scala.collection.Map) {
      out.append("{");
      scala.collection.Iterator pairs = ((scala.collection.Map) held).iterator();
      boolean first = true;
      while (pairs.hasNext()) {
        scala.Tuple2 pair = (scala.Tuple2) pairs.next();
        if (!first) {
          out.append(",");
        }
        first = false;
        text(String.valueOf(pair._1()));
        out.append(":");
        value(pair._2(), places, depth + 1);
      }
      out.append("}");
    } else if (held instanceof scala.collection.Iterable) {
      list(listed(held), places, depth);
    } else if (held instanceof scala.Tuple2) {
      List both = new ArrayList();
      both.add(((scala.Tuple2) held)._1());
      both.add(((scala.Tuple2) held)._2());
      list(both, places, depth);
    } else if (held instanceof ExprId) {
      out.append(((ExprId) held).id());
    } else if (held instanceof Boolean || held instanceof Integer || held instanceof Long || held instanceof Short) {
      out.append(held);
    } else if (held instanceof ExistenceJoin) {
      out.append("{\"mark\":").append(((ExistenceJoin) held).exists().exprId().id()).append("}");
    } else if (held instanceof scala.Product && !(held instanceof scala.collection.Iterable) && depth < 4) {
      scala.Product product = (scala.Product) held;
      if (product.productArity() == 0) {
        text(held.toString());
        return;
      }
      out.append("{\"is\":");
      text(simpleName(held));
      for (int i = 0; i < product.productArity(); i++) {
        out.append(",");
        text(product.productElementName(i));
        out.append(":");
        value(product.productElement(i), places, depth + 1);
      }
      out.append("}");
    } else {
      text(held.toString());
    }
  }

  private void list(List held, IdentityHashMap places, int depth) {
    out.append("[");
    for (int i = 0; i < held.size(); i++) {
      if (i > 0) {
        out.append(",");
      }
      value(held.get(i), places, depth + 1);
    }
    out.append("]");
  }

  private void text(String held) {
    out.append('"');
    for (int i = 0; i < held.length(); i++) {
      char letter = held.charAt(i);
      if (letter == '"' || letter == '\\') {
        out.append('\\').append(letter);
      } else if (letter < ' ' || letter > '~') {
        String hex = Integer.toHexString(letter);
        out.append("\\u").append("0000".substring(hex.length())).append(hex);
      } else {
        out.append(letter);
      }
    }
    out.append('"');
  }

  private static String simpleName(Object held) {
    String name = held.getClass().getName();
    name = name.substring(Math.max(name.lastIndexOf('.'), name.lastIndexOf('$', name.length() - 2)) + 1);
    return name.endsWith("$") ? name.substring(0, name.length() - 1) : name;
  }

  private static List listed(Object held) {
    List found = new ArrayList();
    scala.collection.Iterator each = ((scala.collection.Iterable) held).iterator();
    while (each.hasNext()) {
      found.add(each.next());
    }
    return found;
  }

  private static scala.collection.immutable.Seq sequence(List held) {
    return scala.jdk.CollectionConverters$.MODULE$.ListHasAsScala(held).asScala().toSeq();
  }

  // -- one shape ----------------------------------------------------------------------------------------------------

  /** A plan without common table expressions, aliases and hints, its subqueries as joins, Expand and PIVOT lowered. */
  public Object prepared(Object analyzed) {
    LogicalPlan plan = new InlineCTE(true, false, false).apply((LogicalPlan) analyzed);
    plan = (LogicalPlan) plan.transformAllExpressions(new Plainly(false));
    return lowered(DeduplicateRelations$.MODULE$.apply(joined(plan)));
  }

  private LogicalPlan joined(LogicalPlan plan) {
    plan = EliminateSubqueryAliases$.MODULE$.apply(plan);
    plan = EliminatePipeOperators$.MODULE$.apply(plan);
    plan = EliminateResolvedHint$.MODULE$.apply(plan);
    plan = OptimizeOneRowRelationSubquery$.MODULE$.apply(plan);
    plan = PullOutNestedDataOuterRefExpressions$.MODULE$.apply(plan);
    plan = PullupCorrelatedPredicates$.MODULE$.apply(plan);
    plan = (LogicalPlan) plan.transformAllExpressions(new Inner());
    plan = RewriteLateralSubquery$.MODULE$.apply(plan);
    plan = RewriteCorrelatedScalarSubquery$.MODULE$.apply(plan);
    return RewritePredicateSubquery$.MODULE$.apply(plan);
  }

  private class Inner extends scala.runtime.AbstractPartialFunction {
    public boolean isDefinedAt(Object each) {
      return each instanceof SubqueryExpression;
    }

    public Object applyOrElse(Object each, scala.Function1 otherwise) {
      if (!(each instanceof SubqueryExpression)) {
        return otherwise.apply(each);
      }
      SubqueryExpression subquery = (SubqueryExpression) each;
      return subquery.withNewPlan(joined((LogicalPlan) subquery.plan()));
    }
  }

  /**
   * Aggregates of subqueries that stand for others, as those: only of them Spark knows what they are of no rows
   * (count_if is 0), when it makes joins of subqueries.
   */
  private static class Plainly extends scala.runtime.AbstractPartialFunction {
    private final boolean inside;

    Plainly(boolean inside) {
      this.inside = inside;
    }

    public boolean isDefinedAt(Object each) {
      return each instanceof SubqueryExpression || (inside && each instanceof RuntimeReplaceableAggregate);
    }

    public Object applyOrElse(Object each, scala.Function1 otherwise) {
      if (!isDefinedAt(each)) {
        return otherwise.apply(each);
      }
      if (each instanceof RuntimeReplaceableAggregate) {
        return ((RuntimeReplaceable) each).replacement();
      }
      SubqueryExpression subquery = (SubqueryExpression) each;
      LogicalPlan plan = (LogicalPlan) subquery.plan();
      return subquery.withNewPlan((LogicalPlan) plan.transformAllExpressions(new Plainly(true)));
    }
  }

  private static LogicalPlan lowered(LogicalPlan plan) {
    return (LogicalPlan) plan.transformUpWithSubqueries(new Lowering());
  }

  private static class Lowering extends scala.runtime.AbstractPartialFunction {
    public boolean isDefinedAt(Object each) {
      return each instanceof LogicalPlan;
    }

    public Object applyOrElse(Object each, scala.Function1 otherwise) {
      LogicalPlan plan = (LogicalPlan) ((LogicalPlan) each).transformExpressionsUp(new Words());
      if (plan instanceof Join && ((Join) plan).joinType() == org.apache.spark.sql.catalyst.plans.Cross$.MODULE$) {
        Join join = (Join) plan;
        return new Join(join.left(), join.right(), org.apache.spark.sql.catalyst.plans.Inner$.MODULE$,
            join.condition(), join.hint());
      }
      return plan instanceof Expand ? unnested((Expand) plan) : plan;
    }
  }

  /** Expand: a row for each projection, as inline(array(struct, …)). */
  private static LogicalPlan unnested(Expand expand) {
    List outputs = listed(expand.output());
    List structs = new ArrayList();
    List projections = listed(expand.projections());
    for (int i = 0; i < projections.size(); i++) {
      List items = listed(projections.get(i));
      List named = new ArrayList();
      for (int j = 0; j < items.size(); j++) {
        Expression item = (Expression) items.get(j);
        DataType type = ((Attribute) outputs.get(j)).dataType();
        if (item instanceof Literal && !item.dataType().sameType(type)) {
          item = new Literal(((Literal) item).value(), type);
        }
        named.add(org.apache.spark.sql.catalyst.expressions.Literal$.MODULE$.apply("e" + j));
        named.add(item);
      }
      structs.add(new CreateNamedStruct(sequence(named)));
    }
    Inline generator = new Inline(new CreateArray(sequence(structs), false));
    List made = new ArrayList();
    List shown = new ArrayList();
    org.apache.spark.sql.types.StructType element =
        (org.apache.spark.sql.types.StructType) ((org.apache.spark.sql.types.ArrayType) generator.child().dataType()).elementType();
    for (int j = 0; j < outputs.size(); j++) {
      Attribute output = (Attribute) outputs.get(j);
      Attribute fresh = new AttributeReference(
          "e" + j, output.dataType(), element.apply(j).nullable(), Metadata.empty(),
          org.apache.spark.sql.catalyst.expressions.NamedExpression$.MODULE$.newExprId(), sequence(new ArrayList()));
      made.add(fresh);
      shown.add(new Alias(fresh, output.name(), output.exprId(), sequence(new ArrayList()),
          new scala.Some(output.metadata()), sequence(new ArrayList())));
    }
    LogicalPlan generated = new Generate(
        generator, sequence(new ArrayList()), false, scala.Option.empty(), sequence(made), expand.child());
    return new Project(sequence(shown), generated);
  }

  /** Expressions that SQL has no words for, in others that mean the same. */
  private static class Words extends scala.runtime.AbstractPartialFunction {
    public boolean isDefinedAt(Object each) {
      return each instanceof KnownNullable || each instanceof PreciseTimestampConversion || each instanceof With
          || isPivot(each) || isNullIf(each);
    }

    /** What NULLIF becomes when its common expression is written out: NULL if the first holds, else the second. */
    private boolean isNullIf(Object each) {
      return simpleName(each).equals("NullIfResult") && ((Expression) each).children().size() == 2;
    }

    private boolean isPivot(Object each) {
      return each instanceof AggregateExpression && ((AggregateExpression) each).aggregateFunction() instanceof PivotFirst;
    }

    public Object applyOrElse(Object each, scala.Function1 otherwise) {
      if (each instanceof KnownNullable) {
        return ((KnownNullable) each).child();
      }
      if (isNullIf(each)) {
        List parts = listed(((Expression) each).children());
        Expression held = (Expression) parts.get(1);
        return new If((Expression) parts.get(0), new Literal(null, held.dataType()), held);
      }
      if (each instanceof PreciseTimestampConversion) {
        PreciseTimestampConversion conversion = (PreciseTimestampConversion) each;
        String from = conversion.fromType().sql();
        String to = conversion.toType().sql();
        if (from.equals("TIMESTAMP") && to.equals("BIGINT")) {
          return new UnixMicros(conversion.child());
        }
        if (from.equals("BIGINT") && to.equals("TIMESTAMP")) {
          return new MicrosToTimestamp(conversion.child());
        }
        return each;
      }
      if (each instanceof With) {
        return ((With) each).child().transform(new Written(((With) each).defs()));
      }
      return isPivot(each) ? pivoted((AggregateExpression) each) : otherwise.apply(each);
    }
  }

  /** Common expressions written out where they are named. */
  private static class Written extends scala.runtime.AbstractPartialFunction {
    private final Map defs = new LinkedHashMap();

    Written(Object defs) {
      List each = listed(defs);
      for (int i = 0; i < each.size(); i++) {
        CommonExpressionDef def = (CommonExpressionDef) each.get(i);
        this.defs.put(def.id(), def.child());
      }
    }

    public boolean isDefinedAt(Object each) {
      return each instanceof CommonExpressionRef && defs.containsKey(((CommonExpressionRef) each).id());
    }

    public Object applyOrElse(Object each, scala.Function1 otherwise) {
      return isDefinedAt(each) ? defs.get(((CommonExpressionRef) each).id()) : otherwise.apply(each);
    }
  }

  /** PIVOT's own aggregate: an array of the value in the row of each pivot value, of which there is at most one. */
  private static Expression pivoted(AggregateExpression each) {
      PivotFirst pivot = (PivotFirst) each.aggregateFunction();
      List cells = new ArrayList();
      List values = listed(pivot.pivotColumnValues());
      DataType type = pivot.valueColumn().dataType();
      for (int i = 0; i < values.size(); i++) {
        Expression wanted = new Literal(values.get(i), pivot.pivotColumn().dataType());
        Expression cell = new If(
            new EqualNullSafe(pivot.pivotColumn(), wanted), pivot.valueColumn(), new Literal(null, type));
        cells.add(new First(cell, true).toAggregateExpression());
      }
      return new CreateArray(sequence(cells), false);
  }

  // -- comparing ----------------------------------------------------------------------------------------------------

  /** Whether two prepared plans are the same for Spark: at once, or after names and columns nobody reads are gone. */
  public boolean same(Object one, Object other) {
    LogicalPlan a = numbered((LogicalPlan) one);
    LogicalPlan b = numbered((LogicalPlan) other);
    return a.sameResult(b) || simplified(a).sameResult(simplified(b));
  }

  /** What is compared, for a look at why two plans differ. */
  public String shown(Object plan) {
    return simplified(numbered((LogicalPlan) plan)).canonicalized().toString();
  }

  private static LogicalPlan simplified(LogicalPlan plan) {
    plan = ReplaceExpressions$.MODULE$.apply(plan);
    plan = (LogicalPlan) plan.transformUp(new Unqualified());
    plan = (LogicalPlan) plan.transformAllExpressions(new Unnamed());
    for (int i = 0; i < 20; i++) {
      LogicalPlan before = plan;
      plan = BooleanSimplification$.MODULE$.apply(plan);
      plan = RemoveRedundantAliases$.MODULE$.apply(plan);
      plan = CollapseProject$.MODULE$.apply(plan);
      plan = ColumnPruning$.MODULE$.apply(plan);
      plan = RemoveNoopOperators$.MODULE$.apply(plan);
      plan = PushPredicateThroughNonJoin$.MODULE$.apply(plan);
      plan = (LogicalPlan) plan.transformUpWithNewOutput(new Bare(), plan.transformUpWithNewOutput$default$2(),
          plan.transformUpWithNewOutput$default$3());
      if (plan.fastEquals(before)) {
        return plan;
      }
    }
    return plan;
  }

  /** The first part of a union without aliases that only rename, which Spark leaves there since it is known by them. */
  private static class Bare extends scala.runtime.AbstractPartialFunction {
    public boolean isDefinedAt(Object each) {
      return each instanceof Union && bared((Union) each) != null;
    }

    private static List bared(Union union) {
      LogicalPlan first = (LogicalPlan) union.children().head();
      if (!(first instanceof Project)) {
        return null;
      }
      List items = listed(((Project) first).projectList());
      List found = new ArrayList();
      Map known = new LinkedHashMap();
      boolean changed = false;
      for (int i = 0; i < items.size(); i++) {
        Object item = items.get(i);
        boolean renames = item instanceof Alias && ((Alias) item).child() instanceof AttributeReference;
        AttributeReference column = renames ? (AttributeReference) ((Alias) item).child()
            : item instanceof AttributeReference ? (AttributeReference) item : null;
        if (column != null && !known.containsKey(column.exprId())) {
          known.put(column.exprId(), item);
          changed = changed || renames;
          item = column;
        } else if (column != null && !renames && known.get(column.exprId()) instanceof Alias) {  // the second of its name
          item = new Alias(column, "x", org.apache.spark.sql.catalyst.expressions.NamedExpression$.MODULE$.newExprId(),
              sequence(new ArrayList()), scala.Option.empty(), sequence(new ArrayList()));
        }
        found.add(item);
      }
      return changed ? found : null;
    }

    public Object applyOrElse(Object each, scala.Function1 otherwise) {
      if (!isDefinedAt(each)) {
        return otherwise.apply(each);
      }
      Union union = (Union) each;
      Project first = (Project) union.children().head();
      List children = listed(union.children());
      children.set(0, new Project(sequence(bared(union)), first.child()));
      LogicalPlan made = new Union(sequence(children), union.byName(), union.allowMissingCol());
      List before = listed(union.output());
      List after = listed(made.output());
      List pairs = new ArrayList();
      for (int i = 0; i < before.size(); i++) {
        pairs.add(new scala.Tuple2(before.get(i), after.get(i)));
      }
      return new scala.Tuple2(made, sequence(pairs));
    }
  }

  private static class Unqualified extends scala.runtime.AbstractPartialFunction {
    public boolean isDefinedAt(Object each) {
      return each instanceof Generate;
    }

    public Object applyOrElse(Object each, scala.Function1 otherwise) {
      if (!(each instanceof Generate)) {
        return otherwise.apply(each);
      }
      Generate made = (Generate) each;
      return new Generate(made.generator(), sequence(new ArrayList()), made.outer(), scala.Option.empty(),
          made.generatorOutput(), made.child());
    }
  }

  private static class Unnamed extends scala.runtime.AbstractPartialFunction {
    public boolean isDefinedAt(Object each) {
      return each instanceof Alias || each instanceof AttributeReference || isIdle(each) || isNull(each)
          || isEmptyArray(each) || isStruct(each);
    }

    /** A struct that is written out, as a value or as the call that makes it. */
    private boolean isStruct(Object each) {
      if (each instanceof Literal) {
        return ((Literal) each).dataType() instanceof org.apache.spark.sql.types.StructType
            && ((Literal) each).value() != null;
      }
      if (!(each instanceof CreateNamedStruct)) {
        return false;
      }
      List parts = listed(((CreateNamedStruct) each).children());
      for (int i = 0; i < parts.size(); i++) {
        if (!(parts.get(i) instanceof Literal)) {
          return false;
        }
      }
      return true;
    }

    /** A cast that only says that something may be NULL which cannot be. */
    private boolean isIdle(Object each) {
      return each instanceof Cast
          && ((Cast) each).dataType().asNullable().equals(((Cast) each).child().dataType().asNullable());
    }

    private boolean isEmptyArray(Object each) {
      if (each instanceof Cast && ((Cast) each).child() instanceof CreateArray) {
        return ((CreateArray) ((Cast) each).child()).children().isEmpty();
      }
      return each instanceof Literal && ((Literal) each).value() instanceof org.apache.spark.sql.catalyst.util.ArrayData
          && ((org.apache.spark.sql.catalyst.util.ArrayData) ((Literal) each).value()).numElements() == 0;
    }

    private boolean isNull(Object each) {
      return each instanceof Cast && ((Cast) each).child() instanceof Literal
          && ((Literal) ((Cast) each).child()).value() == null;
    }

    public Object applyOrElse(Object each, scala.Function1 otherwise) {
      scala.collection.immutable.Seq none = sequence(new ArrayList());
      if (each instanceof Alias) {
        Alias alias = (Alias) each;
        return new Alias(alias.child(), "x", alias.exprId(), none, scala.Option.empty(), none);
      }
      if (each instanceof AttributeReference) {
        AttributeReference column = (AttributeReference) each;
        return new AttributeReference("x", column.dataType(), column.nullable(), Metadata.empty(), column.exprId(), none);
      }
      if (isIdle(each)) {
        Object inner = ((Cast) each).child();
        return isDefinedAt(inner) ? applyOrElse(inner, otherwise) : inner;
      }
      if (isEmptyArray(each)) {
        Object nothing = new org.apache.spark.sql.catalyst.util.GenericArrayData(new Object[0]);
        return new Literal(nothing, ((Expression) each).dataType().asNullable());
      }
      if (isNull(each)) {
        return new Literal(null, ((Cast) each).dataType());
      }
      if (isStruct(each)) {
        return new Literal(((Expression) each).eval(null), ((Expression) each).dataType().asNullable());
      }
      return otherwise.apply(each);
    }
  }

  /** The flags of mark joins numbered by their places: they are part of the kind of the join, where no comparison looks. */
  private static LogicalPlan numbered(LogicalPlan plan) {
    Map flags = new LinkedHashMap();
    List joins = listed(plan.collect(new Marks()));
    for (int i = 0; i < joins.size(); i++) {
      Attribute flag = ((ExistenceJoin) ((Join) joins.get(i)).joinType()).exists();
      flags.put(flag.exprId(), new ExprId(-1L - i, java.util.UUID.fromString("00000000-0000-0000-0000-000000000000")));
    }
    return flags.isEmpty() ? plan : (LogicalPlan) plan.transformUp(new Renumber(flags));
  }

  private static class Marks extends scala.runtime.AbstractPartialFunction {
    public boolean isDefinedAt(Object each) {
      return each instanceof Join && ((Join) each).joinType() instanceof ExistenceJoin;
    }

    public Object applyOrElse(Object each, scala.Function1 otherwise) {
      return isDefinedAt(each) ? each : otherwise.apply(each);
    }
  }

  private static class Renumber extends scala.runtime.AbstractPartialFunction {
    private final Map flags;

    Renumber(Map flags) {
      this.flags = flags;
    }

    public boolean isDefinedAt(Object each) {
      return each instanceof LogicalPlan;
    }

    public Object applyOrElse(Object each, scala.Function1 otherwise) {
      if (!(each instanceof LogicalPlan)) {
        return otherwise.apply(each);
      }
      LogicalPlan plan = (LogicalPlan) ((LogicalPlan) each).transformExpressions(new RenumberExpression(flags));
      if (plan instanceof Join && ((Join) plan).joinType() instanceof ExistenceJoin) {
        Join join = (Join) plan;
        Attribute flag = ((ExistenceJoin) join.joinType()).exists();
        ExprId number = (ExprId) flags.get(flag.exprId());
        if (number != null) {
          JoinType kind = new ExistenceJoin((Attribute) flag.withExprId(number));
          return new Join(join.left(), join.right(), kind, join.condition(), join.hint());
        }
      }
      return plan;
    }
  }

  private static class RenumberExpression extends scala.runtime.AbstractPartialFunction {
    private final Map flags;

    RenumberExpression(Map flags) {
      this.flags = flags;
    }

    public boolean isDefinedAt(Object each) {
      return each instanceof AttributeReference && flags.containsKey(((AttributeReference) each).exprId());
    }

    public Object applyOrElse(Object each, scala.Function1 otherwise) {
      if (!isDefinedAt(each)) {
        return otherwise.apply(each);
      }
      return ((AttributeReference) each).withExprId((ExprId) flags.get(((AttributeReference) each).exprId()));
    }
  }

  // -- questions ----------------------------------------------------------------------------------------------------

  /** Whether a plan asks for the current time, user or the like, anywhere. */
  public boolean changesWithTime(Object plan) {
    return ((LogicalPlan) plan).containsPattern(TreePattern.CURRENT_LIKE());
  }

  /** The name of an expression whose value is another each time, anywhere in a plan; null if there is none. */
  public String undetermined(Object plan) {
    scala.collection.Iterator nodes = ((LogicalPlan) plan).collectWithSubqueries(new Undetermined()).iterator();
    return nodes.hasNext() ? (String) nodes.next() : null;
  }

  private static class Undetermined extends scala.runtime.AbstractPartialFunction {
    public boolean isDefinedAt(Object each) {
      return each instanceof LogicalPlan && found((LogicalPlan) each) != null;
    }

    private String found(LogicalPlan plan) {
      if (plan instanceof org.apache.spark.sql.catalyst.plans.logical.Sample) {
        return "TABLESAMPLE";
      }
      List expressions = listed(plan.expressions());
      for (int i = 0; i < expressions.size(); i++) {
        String name = deepest((Expression) expressions.get(i));
        if (name != null) {
          return name;
        }
      }
      return null;
    }

    private String deepest(Expression each) {
      if (each.deterministic()) {
        return null;
      }
      List children = listed(each.children());
      for (int i = 0; i < children.size(); i++) {
        String name = deepest((Expression) children.get(i));
        if (name != null) {
          return name;
        }
      }
      return each.prettyName() + "()";
    }

    public Object applyOrElse(Object each, scala.Function1 otherwise) {
      return isDefinedAt(each) ? found((LogicalPlan) each) : otherwise.apply(each);
    }
  }

  /** The most rows that a plan can have, or -1. */
  public long mostRows(Object plan) {
    scala.Option most = ((LogicalPlan) plan).maxRows();
    return most.isEmpty() ? -1L : ((Long) most.get()).longValue();
  }
}
