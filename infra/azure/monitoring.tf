resource "azurerm_log_analytics_workspace" "logs" {
  name                = var.name
  resource_group_name = local.group
  location            = var.location
  sku                 = "PerGB2018"
  retention_in_days   = var.log_retention_days
  tags                = local.tags
}

resource "azurerm_application_insights" "app" {
  name                         = var.name
  resource_group_name          = local.group
  location                     = var.location
  application_type             = "web"
  workspace_id                 = azurerm_log_analytics_workspace.logs.id
  retention_in_days            = 30 # the workspace's own holds
  local_authentication_enabled = false
  tags                         = local.tags
}

locals {
  # A line of the catalog's is a message of JSON.
  of_tasks       = "traces | where message startswith '{' | extend line = parse_json(message) | where line.Operation == 'tasks'"
  of_collections = "traces | where message startswith '{' | extend line = parse_json(message) | where line.Operation == 'collect'"
  stale_keys     = "traces | where message startswith '{' | extend line = parse_json(message) | where toint(line.StaleKeys) == 1"
  alerts = {
    # A client that retries a commit under a key older than a day is answered with 500, as the specification requires for
    # an unknown outcome. That is no failure of the catalog, and the host can't distinguish it.
    "5xx" = {
      description = "The catalog answers with 5xx"
      query       = "requests | where operation_Name == 'api' and toint(resultCode) >= 500 | join kind=leftanti (${local.stale_keys}) on operation_Id"
      minutes     = "PT5M"
      operator    = "GreaterThanOrEqual"
      threshold   = 5
      severity    = 1
    }
    "reconcile-failed" = {
      description = "A run of the reconciler failed"
      query       = "requests | where operation_Name == 'reconcile' and success == false"
      minutes     = "PT15M"
      operator    = "GreaterThanOrEqual"
      threshold   = 1
      severity    = 2
    }
    # Four runs an hour: one that reached the end is enough, none at all is not, whatever kept them from saying so.
    "reconcile-age" = {
      description = "No walk of the reconciler has reached its end for an hour"
      query       = "traces | where message startswith '{' | extend line = parse_json(message) | where line.Operation == 'reconcile' and toint(line.ReconcileCompleted) == 1"
      minutes     = "PT1H"
      operator    = "LessThan"
      threshold   = 1
      severity    = 2
    }
    "collect-age" = {
      description = "No collection has reached its end for two days"
      query       = "${local.of_collections} and toint(line.CollectionCompleted) == 1"
      minutes     = "P2D"
      operator    = "LessThan"
      threshold   = 1
      severity    = 3
    }
    "state-size" = {
      description = "The catalog's state has more objects than it should: collection does not keep up"
      query       = "${local.of_collections} and toint(line.StateObjects) > ${var.max_state_objects}"
      minutes     = "P1D"
      operator    = "GreaterThanOrEqual"
      threshold   = 1
      severity    = 3
    }
    "tasks-age" = {
      description = "Nobody has looked for tasks for an hour, or each look found one that has been due for as long"
      query       = "${local.of_tasks} and toint(line.TasksDueAge) < 3600"
      minutes     = "PT1H"
      operator    = "LessThan"
      threshold   = 1
      severity    = 2
    }
    "tasks-failed" = {
      description = "A task has failed for good: arco tasks says why"
      query       = "${local.of_tasks} and toint(line.TasksFailed) > 0"
      minutes     = "PT15M"
      operator    = "GreaterThanOrEqual"
      threshold   = 1
      severity    = 2
    }
    "leases-lost" = {
      description = "Workers died, or stood still, over their tasks"
      query       = "${local.of_tasks} and toint(line.LeasesLost) > 0"
      minutes     = "PT1H"
      operator    = "GreaterThanOrEqual"
      threshold   = 1
      severity    = 3
    }
  }
}

resource "azurerm_monitor_scheduled_query_rules_alert_v2" "alert" {
  for_each = local.alerts

  name                    = "${var.name}-${each.key}"
  description             = each.value.description
  resource_group_name     = local.group
  location                = var.location
  scopes                  = [azurerm_application_insights.app.id]
  severity                = each.value.severity
  evaluation_frequency    = lookup({ PT1H = "PT15M", P1D = "PT1H", P2D = "PT1H" }, each.value.minutes, each.value.minutes)
  window_duration         = each.value.minutes
  auto_mitigation_enabled = true
  skip_query_validation   = true # the tables are there once something was logged
  tags                    = local.tags

  criteria {
    query                   = each.value.query
    time_aggregation_method = "Count"
    operator                = each.value.operator
    threshold               = each.value.threshold
  }

  dynamic "action" {
    for_each = length(var.action_group_ids) > 0 ? [var.action_group_ids] : []
    content {
      action_groups = action.value
    }
  }
}
