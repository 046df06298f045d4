package account

// WithRecheck lets a test observe each time a password is hashed.
var WithRecheck = withRecheck
