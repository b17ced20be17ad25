package connection

// AWS holds the keys that sign each request (Signature Version 4).
type AWS struct {
	// Service is the service name to sign for, such as execute-api.
	Service string
	Region  string
	KeyID   string
	Secret  string
	Token   string // of keys that are for a while, "" for others
}

// readAWS reads the AWS keys; nil if there are none.
func (s section) readAWS() *AWS {
	keys := s.subsection("aws", "service", "region", "access_key_id", "secret_access_key", "session_token")
	if keys == nil {
		return nil
	}
	return &AWS{
		Service: keys.requiredText("service"), Region: keys.requiredText("region"),
		KeyID: keys.requiredSecret("access_key_id"), Secret: keys.requiredSecret("secret_access_key"), Token: keys.readSecret("session_token"),
	}
}
