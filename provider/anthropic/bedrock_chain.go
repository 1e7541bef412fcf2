package anthropic

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials/processcreds"
	"github.com/aws/aws-sdk-go-v2/feature/ec2/imds"
	"github.com/aws/smithy-go/logging"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"understudy/provider"
)

// chainTimeout ends a search for credentials that nobody waits for any more: the SDK lets it run on
// when a caller's context ends, because others may wait for the same.
const chainTimeout = 30 * time.Second

var (
	errNoRegion = errors.New("no AWS region: set region at this provider, or AWS_REGION")
	errPartial  = errors.New("AWS answered without credentials")
	errProcess  = errors.New("the credential_process of the AWS profile gave no usable credentials")
)

// chain finds credentials the way AWS's own tools do: environment, shared configuration files, web
// identity, container, and the metadata service of an EC2 instance only where that is allowed. It
// keeps temporary credentials until they expire.
type chain struct {
	where     provider.AWS
	transport http.RoundTripper
	loaded    atomic.Pointer[aws.Config]
}

func newChain(spec provider.Spec) *chain {
	return &chain{where: spec.AWS, transport: spec.Transport}
}

// region returns the configured region, else that of the environment or of the profile.
func (c *chain) region(ctx context.Context) (string, error) {
	region := c.where.Region
	if region == "" {
		cfg, err := c.load(ctx)
		if err != nil {
			return "", err
		}
		region = cfg.Region
	}
	if !provider.IsRegion(region) {
		return "", errNoRegion
	}
	return region, nil
}

// keys returns credentials to sign with. ctx bounds the wait for them.
func (c *chain) keys(ctx context.Context) (*aws.Credentials, error) {
	cfg, err := c.load(ctx)
	if err != nil {
		return nil, err
	}
	keys, err := cfg.Credentials.Retrieve(ctx)
	if err != nil {
		return nil, fmt.Errorf("looking for AWS credentials: %w", withoutOutput(err))
	}
	return &keys, nil
}

// withoutOutput keeps the output of a credential process out of errors: it holds secrets.
func withoutOutput(err error) error {
	var p *processcreds.ProviderError
	if errors.As(err, &p) {
		return errProcess
	}
	return err
}

// overOwnTransport sends requests for credentials the way the provider's own are sent. The SDK's
// client would dial by itself, and takes another one only where no AWS_CA_BUNDLE is set.
func (c *chain) overOwnTransport(stack *middleware.Stack) error {
	own := smithyhttp.NewClientHandlerWithOptions(&http.Client{
		Transport: c.transport, Timeout: chainTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	})
	send := func(ctx context.Context, in middleware.DeserializeInput, _ middleware.DeserializeHandler) (out middleware.DeserializeOutput, meta middleware.Metadata, err error) {
		out.RawResponse, meta, err = own.Handle(ctx, in.Request)
		return out, meta, err //nolint:wrapcheck // as the SDK made it
	}
	if err := stack.Deserialize.Add(middleware.DeserializeMiddlewareFunc("OwnTransport", send), middleware.After); err != nil {
		return fmt.Errorf("placing the transport: %w", err)
	}
	return nil
}

// requireWhole makes an answer that lacks a part of its credentials a failure. The SDK reads them
// without looking and panics, where nobody could recover.
func requireWhole(stack *middleware.Stack) error {
	check := func(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
		out, meta, err := next.HandleInitialize(ctx, in)
		if result := reflect.Indirect(reflect.ValueOf(out.Result)); err == nil && result.Kind() == reflect.Struct {
			for _, name := range []string{"Credentials", "RoleCredentials", "TokenOutput"} {
				if f := result.FieldByName(name); f.IsValid() && !whole(f) {
					return out, meta, errPartial
				}
			}
		}
		return out, meta, err
	}
	if err := stack.Initialize.Add(middleware.InitializeMiddlewareFunc("RequireWhole", check), middleware.Before); err != nil {
		return fmt.Errorf("guarding AWS's answers: %w", err)
	}
	return nil
}

// whole reports whether no part of v is missing but those that may be.
func whole(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Pointer:
		return !v.IsNil() && whole(v.Elem())
	case reflect.Struct:
		for _, f := range reflect.VisibleFields(v.Type()) {
			if f.IsExported() && len(f.Index) == 1 && !slices.Contains([]string{"IdToken", "TokenType"}, f.Name) && !whole(v.FieldByIndex(f.Index)) {
				return false
			}
		}
	}
	return true
}

// forget drops what was read, so that the next attempt reads it again.
func (c *chain) forget() { c.loaded.Store(nil) }

// load reads the environment and the shared configuration files, once. It asks nobody.
func (c *chain) load(ctx context.Context) (*aws.Config, error) {
	if cfg := c.loaded.Load(); cfg != nil {
		return cfg, nil
	}
	opts := []func(*config.LoadOptions) error{
		config.WithLogger(logging.Nop{}),
		config.WithAPIOptions([]func(*middleware.Stack) error{c.overOwnTransport, requireWhole}),
		config.WithRetryer(func() aws.Retryer { return aws.NopRetryer{} }),
		config.WithDefaultsMode(aws.DefaultsModeStandard),
		config.WithProcessCredentialOptions(func(o *processcreds.Options) { o.Timeout = chainTimeout }),
	}
	if c.where.Region != "" {
		opts = append(opts, config.WithRegion(c.where.Region))
	}
	if c.where.Profile != "" {
		opts = append(opts, config.WithSharedConfigProfile(c.where.Profile))
	}
	if !c.where.IMDS {
		opts = append(opts, config.WithEC2IMDSClientEnableState(imds.ClientDisabled))
	}
	cfg, err := config.LoadDefaultConfig(ctx, opts...)
	if err != nil {
		return nil, fmt.Errorf("reading the AWS configuration: %w", withoutOutput(err))
	}
	c.loaded.Store(&cfg)
	return &cfg, nil
}
