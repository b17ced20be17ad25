package playtest

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net/url"
	"time"

	"github.com/jackc/pgx/v5"
)

// schemaPatience bounds making and dropping a schema.
const schemaPatience = 20 * time.Second

// schema is one in PostgreSQL, which a test has for itself.
type schema struct {
	server string
	name   string
	url    string // that leads there
}

// newSchema makes a schema in a database.
func newSchema(server string) (*schema, error) {
	parsed, err := url.Parse(server)
	if err != nil || parsed.Scheme != "postgres" && parsed.Scheme != "postgresql" {
		return nil, fmt.Errorf("--postgres must be a URL such as postgres://user:password@localhost/test")
	}
	random := make([]byte, 6)
	_, _ = rand.Read(random) // never fails
	s := &schema{server: server, name: "reprise_test_" + hex.EncodeToString(random)}
	query := parsed.Query()
	query.Set("search_path", s.name)
	parsed.RawQuery = query.Encode()
	s.url = parsed.String()
	if err := s.exec("CREATE SCHEMA " + s.name); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *schema) exec(statement string) error {
	ctx, cancel := context.WithTimeout(context.Background(), schemaPatience)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.server)
	if err != nil {
		return fmt.Errorf("the database of --postgres cannot be reached: %w", err)
	}
	defer func() { _ = conn.Close(ctx) }()
	if _, err := conn.Exec(ctx, statement); err != nil {
		return fmt.Errorf("make a schema for the test: %w", err)
	}
	return nil
}
