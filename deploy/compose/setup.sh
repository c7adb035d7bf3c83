# What the catalog of compose.yaml needs before its first start, in the volume `logins`: the key that signs tokens, the
# credentials of root, and a file NAME.env with the login of each principal. It changes nothing
# that exists, so it may be stopped and run again.
set -eu
umask 077
cd /var/lib/arco

role() { # NAME [--catalog-role]
  arco roles create "$@" || arco roles show "$@"
}

login() { # NAME ROLE: the principal NAME with the principal role ROLE
  arco principals create "$1" --json > made.json || arco principals reset "$1" --json > made.json
  arco roles assign "$2" --to "$1"
  python -c 'import json; print("export ARCO_CREDENTIAL={clientId}:{clientSecret}".format(**json.load(open("made.json"))["credentials"]))' > made.env
  chmod 644 made.env # engines run as other users
  mv made.env "$1.env"
  rm made.json
}

if [ ! -s token.key ]; then
  python -c 'import secrets; print(secrets.token_urlsafe(48))' > made.key
  mv made.key token.key
fi
if [ ! -s root.json ]; then
  arco bootstrap --json > made.json || arco bootstrap --reset-root --json > made.json
  mv made.json root.json
fi
if [ ! -s engines.env ]; then
  role content --catalog-role
  arco grants add content CATALOG_MANAGE_CONTENT
  role engines
  arco roles assign content --catalog-role --to engines
  login engines engines
fi
if [ ! -s purges.env ]; then # for delegation.yaml
  role execute_tasks
  login purges execute_tasks
fi
