package integration

// The values of members that allow only some, for the parser and the schema. The kinds of
// authentication, types of inputs and other values with a meaning in Go are where that is.

func methods() []string { return []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"} }

func callAuths() []string { return []string{"none"} }

// idempotencyWords returns the values of idempotency that are no object.
func idempotencyWords() []string { return []string{"safe", "none"} }

func unknownOutcomes() []string { return []string{Repeat, Fail} }

func clientAuths() []string { return []string{"basic", "body"} }

// tokenBodies returns the values of token_body and revoke_body.
func tokenBodies() []string { return []string{"form", "json"} }
