package connection

// NewKeyFile returns the key file of a service account and its public key.
var NewKeyFile = newKeyFile
