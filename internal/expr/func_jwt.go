package expr

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/asn1"
	"encoding/base64"
	"encoding/pem"
	"maps"
	"math/big"
	"slices"
	"strings"
	"time"

	"github.com/stepmill/stepmill/internal/mask"
)

func jwtFunctions() []function {
	return []function{
		fn("jwtSign", "jwtSign(claims, key[, options]) string", `A signed JSON Web Token. The option algorithm is "HS256", the default, with any text as the key, or "RS256" or "ES256" with a private key in PEM (PKCS #1, SEC 1 or PKCS #8). The option header is a map of more header fields, such as kid. Times in exp, nbf and iat become Unix seconds.`, 2, 3, jwtSign,
			`jwtSign({"sub": "ada", "exp": date("2030-01-01")}, "key")`, `"eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJleHAiOjE4OTM0NTYwMDAsInN1YiI6ImFkYSJ9.lf75cXECuurc2iX7y_SPZaIyNHS3bQtpTlbcsBM5Oh0"`,
			`jwtSign({"sub": "ada"}, "key", {"header": {"kid": "k1"}})`, `"eyJhbGciOiJIUzI1NiIsImtpZCI6ImsxIiwidHlwIjoiSldUIn0.eyJzdWIiOiJhZGEifQ.V9CAsPcpFeK5-JXey2GdYDUK-mv_iSz6rQMS1rDvHGk"`),
	}
}

const (
	maxPrivateKey = 8 << 10 // bytes of PEM
	maxRSABits    = 4096
	rsaSteps      = 300_000 // to read a key and sign, several milliseconds
	ecdsaSteps    = 20_000
)

func jwtSign(m *evaluation, a args) (any, error) {
	claims, err := a.object(0)
	if err != nil {
		return nil, err
	}
	key, err := a.text(1)
	if err != nil {
		return nil, err
	}
	given, err := a.options(m, 2, "algorithm", "header")
	if err != nil {
		return nil, err
	}
	algorithm, err := given.choice("algorithm", "HS256", "RS256", "ES256")
	if err != nil {
		return nil, err
	}
	more, err := given.object("header")
	if err != nil {
		return nil, err
	}
	if key == mask.Replacement {
		return mask.Replacement, nil // a masked key gives a masked token
	}
	header, err := m.jwtHeader(algorithm, more)
	if err != nil {
		return nil, err
	}
	if claims, err = m.jwtClaims(claims); err != nil {
		return nil, err
	}
	body, err := m.appendJSON(nil, claims, 0)
	if err != nil {
		return nil, err
	}
	if err := m.digest(4 * (len(header) + len(body))); err != nil {
		return nil, err
	}
	signed := base64.RawURLEncoding.EncodeToString(header) + "." + base64.RawURLEncoding.EncodeToString(body)
	signature, err := m.jwtSignature(algorithm, key, signed)
	if err != nil {
		return nil, err
	}
	return signed + "." + base64.RawURLEncoding.EncodeToString(signature), nil
}

func (m *evaluation) jwtHeader(algorithm string, more map[string]any) ([]byte, error) {
	if err := m.growObject(2 + len(more)); err != nil {
		return nil, err
	}
	header := map[string]any{"typ": "JWT"}
	maps.Copy(header, more)
	header["alg"] = algorithm
	return m.appendJSON(nil, header, 0)
}

// jwtClaims returns the claims with times as RFC 7519 requires them.
func (m *evaluation) jwtClaims(claims map[string]any) (map[string]any, error) {
	if err := m.growObject(len(claims)); err != nil {
		return nil, err
	}
	if err := m.spend(len(claims)); err != nil {
		return nil, err
	}
	out := make(map[string]any, len(claims))
	for name, v := range claims {
		if t, ok := v.(time.Time); ok && slices.Contains([]string{"exp", "nbf", "iat"}, name) {
			v = int(t.Unix())
		}
		out[name] = v
	}
	return out, nil
}

// jwtSignature signs the text. All signatures are deterministic.
func (m *evaluation) jwtSignature(algorithm, key, text string) ([]byte, error) {
	if algorithm == "HS256" {
		return hs256(m, key, text)
	}
	if len(key) > maxPrivateKey {
		return nil, failf("argument 2 of jwtSign has more than %d bytes", maxPrivateKey)
	}
	steps := rsaSteps
	if algorithm == "ES256" {
		steps = ecdsaSteps
	}
	if err := m.spend(steps); err != nil {
		return nil, err
	}
	if err := m.grow(64 << 10); err != nil {
		return nil, err
	}
	sum := sha256.Sum256([]byte(text))
	if algorithm == "ES256" {
		return es256(key, sum[:])
	}
	return rs256(key, sum[:])
}

func hs256(m *evaluation, key, text string) ([]byte, error) {
	if err := m.digest(len(key)); err != nil {
		return nil, err
	}
	if key == "" {
		return nil, failf("argument 2 of jwtSign is empty")
	}
	if privateKey(key[:min(len(key), maxPrivateKey)]) != nil {
		return nil, failf("argument 2 of jwtSign is a PEM key: set the option algorithm to RS256 or ES256")
	}
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write([]byte(text))
	return mac.Sum(nil), nil
}

// privateKey returns the first private key in PEM, nil if there is none. Tools
// write other blocks before it, such as the parameters of a curve.
func privateKey(text string) []byte {
	for rest := []byte(text); ; {
		var block *pem.Block
		block, rest = pem.Decode(rest)
		if block == nil {
			return nil
		}
		if strings.HasSuffix(block.Type, "PRIVATE KEY") {
			return block.Bytes
		}
	}
}

func rs256(key string, sum []byte) ([]byte, error) {
	invalid := failf("argument 2 of jwtSign must be an RSA private key in PEM, of at least 1024 and at most %d bits", maxRSABits)
	der := privateKey(key)
	private, err := x509.ParsePKCS1PrivateKey(der)
	if err != nil {
		parsed, err := x509.ParsePKCS8PrivateKey(der)
		if err != nil {
			return nil, invalid
		}
		private, _ = parsed.(*rsa.PrivateKey)
	}
	// Signing with more than two primes is slow and has no use.
	if private == nil || private.N.BitLen() > maxRSABits || len(private.Primes) != 2 {
		return nil, invalid
	}
	out, err := rsa.SignPKCS1v15(nil, private, crypto.SHA256, sum)
	if err != nil {
		return nil, invalid
	}
	return out, nil
}

func es256(key string, sum []byte) ([]byte, error) {
	invalid := failf("argument 2 of jwtSign must be a private key of the curve P-256 in PEM")
	der := privateKey(key)
	private, err := x509.ParseECPrivateKey(der)
	if err != nil {
		parsed, err := x509.ParsePKCS8PrivateKey(der)
		if err != nil {
			return nil, invalid
		}
		private, _ = parsed.(*ecdsa.PrivateKey)
	}
	if private == nil || private.Curve != elliptic.P256() {
		return nil, invalid
	}
	// Without a source of randomness, the signature is that of RFC 6979.
	encoded, err := private.Sign(nil, sum, crypto.SHA256)
	if err != nil {
		return nil, invalid
	}
	var point struct{ R, S *big.Int }
	if _, err := asn1.Unmarshal(encoded, &point); err != nil {
		return nil, invalid
	}
	out := make([]byte, 64)
	point.R.FillBytes(out[:32])
	point.S.FillBytes(out[32:])
	return out, nil
}
