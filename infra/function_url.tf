# Keeps paths as clients encode them and costs nothing by itself, but signs requests for `lambda` and throttles nothing.

resource "aws_lambda_function_url" "api" {
  count = local.function_url ? 1 : 0

  function_name      = aws_lambda_function.function["api"].function_name
  qualifier          = aws_lambda_alias.live["api"].name
  authorization_type = "AWS_IAM"
  invoke_mode        = "BUFFERED"
}
