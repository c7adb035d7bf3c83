locals {
  catalog_graphs = local.metrics_namespace == "" ? [] : [
    for graph in [
      { title = "Requests", stat = "Sum", metrics = ["Requests", "ServerErrors", "Conflicts", "UnknownOutcomes"] },
      { title = "Latency, ms", stat = "p99", metrics = ["Latency"] },
      { title = "Store calls and depth a request", stat = "Average", metrics = ["StoreCalls", "StoreDepth", "CacheHits"] },
      { title = "Bytes of the store", stat = "Sum", metrics = ["StoreBytesRead", "StoreBytesWritten"] },
      { title = "Reconciler", stat = "Sum", metrics = ["ReconcileCompleted", "ReceiptsWritten"] },
      { title = "Tasks", stat = "Sum", metrics = ["TasksExecuted", "TasksCompleted", "TasksRetried", "TasksFailed", "LeasesLost"] },
      { title = "Oldest task that is due, s", stat = "Maximum", metrics = ["TasksDueAge"] },
      { title = "Objects of the state", stat = "Maximum", metrics = ["StateObjects", "ObjectsCollected"] },
    ] :
    { title = graph.title, stat = graph.stat, metrics = [for metric in graph.metrics : [local.metrics_namespace, metric, "Warehouse", var.warehouse]] }
  ]
  front_door_dimensions = flatten([for name, value in local.front_door.dimensions : [name, value]])
  host_graphs = [
    {
      title   = "Front door"
      stat    = "Sum"
      metrics = [for metric in [local.front_door.requests, local.front_door.errors] : concat([local.front_door.namespace, metric], local.front_door_dimensions)]
    },
    {
      title   = "Functions at once"
      stat    = "Maximum"
      metrics = [for function in keys(local.functions) : ["AWS/Lambda", "ConcurrentExecutions", "FunctionName", "${var.name}-${function}"]]
    },
    {
      title   = "Functions, ms"
      stat    = "p99"
      metrics = [for function in keys(local.functions) : ["AWS/Lambda", "Duration", "FunctionName", "${var.name}-${function}"]]
    },
    {
      title   = "Waiting and given up"
      stat    = "Maximum"
      metrics = [for queue in concat([aws_sqs_queue.work.name], values(local.dead_letters)) : ["AWS/SQS", "ApproximateNumberOfMessagesVisible", "QueueName", queue]]
    },
  ]
}

resource "aws_cloudwatch_dashboard" "catalog" {
  dashboard_name = var.name
  dashboard_body = jsonencode({
    widgets = [
      for place, graph in concat(local.catalog_graphs, local.host_graphs) : {
        type   = "metric"
        x      = 8 * (place % 3)
        y      = 6 * floor(place / 3)
        width  = 8
        height = 6
        properties = {
          title   = graph.title
          region  = local.region
          view    = "timeSeries"
          period  = 300
          stat    = graph.stat
          metrics = graph.metrics
        }
      }
    ]
  })
}
