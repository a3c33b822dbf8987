"""The expressions of the States Language: JSONPath, intrinsic functions, JSONata, and templates of them."""
