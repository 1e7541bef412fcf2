package provider

import (
	"errors"
	"fmt"
	"strings"
)

// AWS says where and as whom Amazon Bedrock is asked with credentials of AWS's own credential
// chain. A Bedrock API key needs the region only.
type AWS struct {
	// Region, such as eu-central-1; "" = that of the environment or of the profile.
	Region string
	// Profile of AWS's shared configuration files; "" = that of the environment, else "default".
	Profile string
	// IMDS allows to ask the metadata service of an EC2 instance (169.254.169.254).
	IMDS bool
}

func (c Config) aws() AWS { return AWS{Region: c.Region, Profile: c.Profile, IMDS: c.IMDS} }

// IsRegion reports whether s can be the name of a region. It becomes part of a host name, so
// nothing else may pass.
func IsRegion(s string) bool {
	for _, c := range []byte(s) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return len(s) >= 4 && len(s) <= 40 && s[0] != '-' && s[len(s)-1] != '-'
}

// checkAWS reports faults of the keys that only Bedrock has.
func (c Config) checkAWS() error {
	var errs []error
	if c.Region != "" && !IsRegion(c.Region) {
		errs = append(errs, fmt.Errorf("region: %q is not the name of an AWS region", c.Region))
	}
	if c.API != Bedrock {
		for _, f := range []struct {
			key string
			set bool
		}{{"region", c.Region != ""}, {"profile", c.Profile != ""}, {"imds", c.IMDS}} {
			if f.set {
				errs = append(errs, fmt.Errorf("%s: only the api %s knows it", f.key, Bedrock))
			}
		}
	}
	return errors.Join(errs...)
}

// usesChain reports whether the credential chain of AWS is to be asked: the configuration names a
// place to look, or the environment does. Whether it finds something shows at the first request.
func (c Config) usesChain(getenv func(string) string) bool {
	if c.API != Bedrock {
		return false
	}
	if c.aws() != (AWS{}) {
		return true
	}
	for _, name := range []string{
		"AWS_ACCESS_KEY_ID", "AWS_PROFILE", "AWS_WEB_IDENTITY_TOKEN_FILE",
		"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI",
	} {
		if getenv(name) != "" {
			return true
		}
	}
	return false
}

// The shelves with the models of Bedrock, named by their profiles for the United States and for Europe.
const (
	bedrockCatalogue = "bedrock"
	bedrockEurope    = "bedrock-europe"
)

// bedrockShelf is the shelf with the models that can be named in a region; "" = none is known.
func bedrockShelf(region string) string {
	switch {
	case strings.HasPrefix(region, "us-") && !strings.HasPrefix(region, "us-gov-"):
		return bedrockCatalogue
	case strings.HasPrefix(region, "eu-"):
		return bedrockEurope
	}
	return ""
}

// bedrock finds a model by the id of a model or of an inference profile, whole or at the end of an
// ARN. The abilities are the same everywhere; the price is told only where the catalogue has that
// very id.
func (c *Catalogue) bedrock(model string) (ModelInfo, bool) {
	id := strings.ToLower(model[strings.LastIndexByte(model, '/')+1:])
	for _, shelf := range []string{bedrockCatalogue, bedrockEurope} {
		if info, ok := c.load()[shelf].models[id]; ok {
			return info, true
		}
	}
	at := strings.Index(id, "anthropic.")
	if at < 0 {
		return ModelInfo{}, false
	}
	info, ok := c.load()[bedrockCatalogue].models["us."+id[at:]]
	info.Price = nil
	return info, ok
}
