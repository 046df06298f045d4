#!/bin/sh
# begin: verify
# verify.sh SECRET ID TIMESTAMP SIGNATURES < body
# The last three are webhook-id, webhook-timestamp and webhook-signature.
set -eu
secret=$1 id=$2 sent=$3 given=$4 now=${NOW:-$(date +%s)}

case $sent in '' | *[!0-9]* | 0* | ?????????????*) exit 1 ;; esac
[ $((now - sent)) -le 300 ] && [ $((sent - now)) -le 300 ] || exit 1

key=$(printf %s "${secret#whsec_}" | openssl base64 -d -A | od -An -v -tx1 | tr -d ' \n')
want=v1,$({ printf %s "$id.$sent." && cat; } | openssl dgst -sha256 -mac HMAC -macopt "hexkey:$key" -binary | openssl base64 -A)

# Comparing digests under a random key keeps the duration of the comparison from
# revealing anything.
once=$(openssl rand -hex 32)
digest() { printf %s "$1" | openssl dgst -sha256 -mac HMAC -macopt "hexkey:$once" -r; }
for one in $given; do
	if [ "$(digest "$one")" = "$(digest "$want")" ]; then exit 0; fi
done
exit 1
# end: verify
