package postgres_test

import (
	"testing"

	"reprise/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }
