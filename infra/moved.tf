# What was made under other addresses by modules before realms: an apply of this one changes nothing of it.

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
