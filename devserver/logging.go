package main

import (
	"io"
	"strings"

	"go.temporal.io/server/common/log"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// logging is the server's logger, which can be switched off.
type logging struct {
	logger log.Logger
	level  zap.AtomicLevel
}

// noLevel is higher than every level that the server logs.
const noLevel = zapcore.FatalLevel + 1

func newLogging(opts options, w io.Writer) logging {
	level := zap.NewAtomicLevelAt(noLevel)
	if opts.logLevel != "never" {
		// opts.logLevel was validated.
		_ = level.UnmarshalText([]byte(opts.logLevel))
	}
	encoder := zapcore.NewConsoleEncoder(log.DefaultZapEncoderConfig)
	if opts.logFormat == "json" {
		encoder = zapcore.NewJSONEncoder(log.DefaultZapEncoderConfig)
	}
	core := withoutAdvice{zapcore.NewCore(encoder, zapcore.Lock(zapcore.AddSync(w)), level)}
	return logging{logger: log.NewZapLogger(zap.New(core)), level: level}
}

// withoutAdvice drops the server's log messages about the HTTP API, which the user did not enable.
type withoutAdvice struct{ zapcore.Core }

const adviceOnHTTP = "HTTP API port has not been set."

func (c withoutAdvice) Check(entry zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if strings.HasPrefix(entry.Message, adviceOnHTTP) {
		return checked
	}
	return c.Core.Check(entry, checked)
}

func (c withoutAdvice) With(fields []zapcore.Field) zapcore.Core {
	return withoutAdvice{c.Core.With(fields)}
}

func (l logging) silence() { l.level.SetLevel(noLevel) }
