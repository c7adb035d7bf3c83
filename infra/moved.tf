# What was made under other addresses by earlier modules: an apply of this one changes nothing of it.

moved {
  from = aws_apigatewayv2_route.api[0]
  to   = aws_apigatewayv2_route.api["v1"]
}

moved {
  from = aws_lambda_permission.http_api[0]
  to   = aws_lambda_permission.http_api["v1"]
}

moved {
  from = aws_api_gateway_resource.v1[0]
  to   = aws_api_gateway_resource.path["v1"]
}

moved {
  from = aws_api_gateway_resource.proxy[0]
  to   = aws_api_gateway_resource.proxy["v1"]
}

moved {
  from = aws_api_gateway_method.api[0]
  to   = aws_api_gateway_method.api["v1"]
}

moved {
  from = aws_api_gateway_integration.api[0]
  to   = aws_api_gateway_integration.api["v1"]
}

moved {
  from = aws_lambda_permission.rest_api[0]
  to   = aws_lambda_permission.rest_api["v1"]
}

moved {
  from = aws_scheduler_schedule.reconcile
  to   = aws_scheduler_schedule.run["reconcile"]
}

moved {
  from = aws_lambda_function_event_invoke_config.reconcile
  to   = aws_lambda_function_event_invoke_config.run["reconcile"]
}

moved {
  from = aws_sqs_queue.reconcile_dead
  to   = aws_sqs_queue.run_dead["reconcile"]
}

moved {
  from = aws_cloudwatch_metric_alarm.reconcile_age[0]
  to   = aws_cloudwatch_metric_alarm.catalog["reconcile-age"]
}
