package connection

import "strings"

// AWS holds the keys that sign each request (Signature Version 4), or says where the worker gets them.
type AWS struct {
	// Service is the service name to sign for, such as execute-api.
	Service string
	Region  string
	// KeyID and Secret are the keys; "" for those that AWS's own programs would use on the worker's machine. Token is
	// set for keys that expire.
	KeyID  string
	Secret string
	Token  string
	// RoleARN is the role that the keys assume, whose own keys sign; "" for none. ExternalID is what its trust policy
	// may ask for.
	RoleARN    string
	ExternalID string
}

// readAWS reads the AWS keys; nil if there are none.
func (s section) readAWS() *AWS {
	keys := s.subsection("aws", "service", "region", "access_key_id", "secret_access_key", "session_token", "role_arn", "external_id")
	if keys == nil {
		return nil
	}
	read := &AWS{
		Service: keys.requiredText("service"), Region: keys.requiredText("region"),
		RoleARN: keys.optionalText("role_arn"), ExternalID: keys.readSecret("external_id"),
	}
	if keys.hasKey("access_key_id") || keys.hasKey("secret_access_key") || keys.hasKey("session_token") {
		read.KeyID, read.Secret, read.Token = keys.requiredSecret("access_key_id"), keys.requiredSecret("secret_access_key"), keys.readSecret("session_token")
	}
	if read.RoleARN != "" && !strings.HasPrefix(read.RoleARN, "arn:") {
		keys.d.recordProblem(keys.pathOf("role_arn"), "must have the ARN of a role as %s, such as arn:aws:iam::123456789012:role/orders", keys.keyName("role_arn"))
	}
	if keys.hasKey("external_id") && read.RoleARN == "" {
		keys.d.recordProblem(keys.pathOf("external_id"), "has %s, which is for a role; add role_arn, or remove it", keys.keyName("external_id"))
	}
	return read
}
