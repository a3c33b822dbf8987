"""State machines and functions on AWS: what they need there, as a CloudFormation template."""
