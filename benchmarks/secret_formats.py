"""Invented secrets in the formats of known issuers and files, generated so that the repository contains none.

A format is a text with one or more fields: `{20:alnum}` stands for 20 random characters of an alphabet. Everything in
a field must be hidden. `~` splits prefixes that scanners of repositories would report; it is removed.
"""

import base64
import random
import re
import string
from collections.abc import Mapping
from dataclasses import dataclass

_ALPHABETS: Mapping[str, str] = {
    "alnum": string.ascii_letters + string.digits,
    "hex": "0123456789abcdef",
    "upper": "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567",
    "url": string.ascii_letters + string.digits + "-_",
    "b64": string.ascii_letters + string.digits + "+/",
    "digits": string.digits,
}
_FIELD = re.compile(r"\{(\d+):(\w+)\}")

FORMATS: Mapping[str, str] = {
    "Anthropic": "sk-~ant-api03-{95:url}",
    "OpenAI": "sk-~{48:alnum}",
    "OpenAI project": "sk-~proj-{120:url}",
    "OpenRouter": "sk-~or-v1-{64:hex}",
    "Google API key": "AI~za{35:url}",
    "Google OAuth client": "GOC~SPX-{28:url}",
    "Google access token": "ya~29.{100:url}",
    "Google refresh token": "1/~/0{60:url}",
    "GitHub personal": "gh~p_{36:alnum}",
    "GitHub OAuth": "gh~o_{36:alnum}",
    "GitHub server": "gh~s_{36:alnum}",
    "GitHub fine-grained": "github~_pat_{82:alnum}",
    "GitLab personal": "gl~pat-{20:url}",
    "GitLab runner": "gl~rt-{20:url}",
    "AWS key id": "AK~IA{16:upper}",
    "AWS secret key": "aws_secret_access_key = {40:b64}",
    "AWS session token": "aws_session_token = IQo~Jb3JpZ2luX2Vj{300:b64}",
    "AWS session token, any": 'AWS_SESSION_TOKEN="{200:b64}"',
    "Azure storage": "AccountName=me;Account~Key={86:b64}==;EndpointSuffix=core.windows.net",
    "Azure shared access": "Endpoint=sb://x.servicebus.windows.net/;SharedAccessKeyName=Root;SharedAccess~Key={43:b64}=",
    "Azure SAS": "https://me.blob.core.windows.net/c/f?sv=2024-11-04&se=2026-01-01&sp=r&si~g={43:alnum}%3D",
    "Azure application": "client secret: abc8~Q~~{34:alnum}",
    "presigned S3": "https://b.s3.amazonaws.com/k?X-Amz-Expires=60&X-Amz-Sign~ature={64:hex}",
    "presigned GCS": "https://storage.googleapis.com/b/k?X-Goog-SignedHeaders=host&X-Goog-Sign~ature={256:hex}",
    "Slack bot": "xo~xb-{12:digits}-{24:alnum}",
    "Slack webhook": "https://hooks.slack.com/serv~ices/T0AB12CD3/B0AB12CD3/{24:alnum}",
    "Discord webhook": "https://discord.com/api/web~hooks/123456789012345678/{68:url}",
    "Discord bot": "Authorization: Bot {24:alnum}.{6:alnum}.{38:url}",
    "Stripe": "sk~_live_{24:alnum}",
    "Stripe restricted": "rk~_live_{99:alnum}",
    "Stripe webhook": "wh~sec_{32:alnum}",
    "Hugging Face": "h~f_{34:alnum}",
    "npm": "np~m_{36:alnum}",
    "npmrc": "//registry.npmjs.org/:_auth~Token={36:alnum}",
    "npmrc, basic": "//registry.example.org/:_au~th={32:alnum}=",
    "PyPI": "py~pi-AgEIcHlwaS5vcmc{120:url}",
    "Groq": "gs~k_{52:alnum}",
    "xAI": "xa~i-{80:alnum}",
    "Perplexity": "ppl~x-{48:alnum}",
    "Replicate": "r~8_{37:alnum}",
    "Fireworks": "f~w_{24:alnum}",
    "SendGrid": "S~G.{22:url}.{43:url}",
    "Twilio": "S~K{32:hex}",
    "Mailgun": "ke~y-{32:hex}",
    "Mailchimp": "{32:hex}-us~12",
    "Brevo": "xkeys~ib-{64:hex}-{16:alnum}",
    "Telegram": "123456789:A~A{33:url}",
    "Shopify": "shp~at_{32:hex}",
    "DigitalOcean": "dop~_v1_{64:hex}",
    "Databricks": "da~pi{32:hex}",
    "Linear": "lin~_api_{40:alnum}",
    "Notion": "nt~n_{46:alnum}",
    "Notion, old": "sec~ret_{43:alnum}",
    "Vault": "hv~s.{95:url}",
    "Terraform": "{14:alnum}.atlas~v1.{67:alnum}",
    "terraformrc": 'credentials "app.terraform.io" {{ token = "{40:alnum}" }}',
    "Doppler": "dp~.pt.{43:alnum}",
    "Square": "sq0~atp-{22:url}",
    "Atlassian": "ATA~TT3xFfGF0{180:alnum}=1A2B3C4D",
    "Sentry": "sntry~s_{120:alnum}",
    "Grafana": "gl~sa_{32:alnum}_{8:hex}",
    "New Relic": "NRA~K-{27:upper}",
    "Supabase": "sb~p_{40:hex}",
    "Supabase secret": "sb_sec~ret_{31:url}",
    "Vercel": "vc~p_{56:alnum}",
    "Netlify": "nf~p_{40:alnum}",
    "Fly": "FlyV1 fm~2_{200:b64}",
    "Cloudflare": "v1~.0-{24:hex}-{146:hex}",
    "Heroku": "HRK~U-{60:url}",
    "Docker Hub": "dckr~_pat_{27:url}",
    "PlanetScale": "pscale~_tkn_{43:url}",
    "RubyGems": "ruby~gems_{48:hex}",
    "Postman": "PMA~K-{24:hex}-{34:hex}",
    "Figma": "fig~d_{43:url}",
    "LangSmith": "lsv~2_pt_{32:hex}_{10:hex}",
    "Pinecone": "pc~sk_{70:alnum}",
    "NVIDIA": "nva~pi-{64:url}",
    "Tailscale": "tsk~ey-auth-{17:alnum}-{32:alnum}",
    "HubSpot": "pat-na~1-{8:hex}-{4:hex}-{4:hex}-{4:hex}-{12:hex}",
    "age": "AGE-SEC~RET-KEY-1{58:upper}",
    "JSON Web Token": "ey~JhbGciOiJIUzI1NiJ9.ey~J{60:url}.{43:url}",
    "bearer header": "Authorization: Bearer {40:alnum}",
    "token header": "Authorization: Token {40:hex}",
    "basic header": "Authorization: Basic {26:alnum}==",
    "API key header": "X-Api-Key: {32:alnum}",
    "Azure header": "Ocp-Apim-Subscription-Key: {32:hex}",
    "GitLab header": "PRIVATE-TOKEN: {20:alnum}",
    "cookie": "Cookie: theme=dark; sessionid={32:alnum}",
    "set-cookie": "Set-Cookie: sid={40:alnum}; Path=/; HttpOnly",
    "PostgreSQL URL": "postgres://app:{16:alnum}@db.internal:5432/app",
    "MongoDB URL": "mongodb+srv://root:{16:alnum}@cluster0.example.net/test",
    "Redis URL": "redis://:{24:alnum}@cache:6379/0",
    "AMQP URL": "amqps://guest:{16:alnum}@mq/vhost",
    "basic URL": "https://me:{20:alnum}@example.com/x.git",
    "JDBC": "jdbc:postgresql://db/app?user=me&password={16:alnum}&ssl=true",
    "ADO": "Server=db;Database=app;User Id=sa;Password={16:alnum};Encrypt=true",
    "netrc": "machine example.com login me password {16:alnum}",
    "pgpass": "db.internal:5432:app:me:{16:alnum}",
    "Docker config": '{{"auths": {{"https://index.docker.io/v1/": {{"auth": "{32:alnum}"}}}}}}',
    "curl": "curl -u me:{16:alnum} https://example.com",
    "curl, long": "curl --user 'me:{16:alnum}' https://example.com",
    "YAML password": "db:\n  password: {16:alnum}\n  port: 5432",
    "YAML token": "token: {32:alnum}\nname: x",
    "JSON password": '{{"user": "me", "password": "{14:alnum}"}}',
    "JSON secret": '{{"client_secret": "{32:alnum}"}}',
    "TOML key": 'api_key = "{32:alnum}"',
    "environment file": "DB_PASSWORD={16:alnum}\nPORT=80",
    "environment, export": "export SERVICE_API_KEY='{32:alnum}'",
    "flag": "deploy --password {16:alnum} --verbose",
    "flag, token": "deploy --token={32:alnum}",
    "Laravel": "APP_KEY=base64:{43:alnum}=",
    "Django": "SECRET_KEY = '{50:alnum}'",
    "WireGuard": "[Interface]\nPrivate~Key = {43:b64}=",
    "kubeconfig": "client-key-data: LS0tLS1C~RUdJTiBSU0EgUFJJVkFURSBLRVk{200:alnum}=",
}
"""Text by format."""

BLOCKS: Mapping[str, tuple[str, str]] = {
    "RSA": ("-----BEGIN RSA PRIVATE KEY-----", "-----END RSA PRIVATE KEY-----"),
    "RSA, encrypted": (
        "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0123456789ABCDEF\n",
        "-----END RSA PRIVATE KEY-----",
    ),
    "PKCS 8": ("-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----"),
    "OpenSSH": ("-----BEGIN OPENSSH PRIVATE KEY-----", "-----END OPENSSH PRIVATE KEY-----"),
    "EC": ("-----BEGIN EC PRIVATE KEY-----", "-----END EC PRIVATE KEY-----"),
    "PGP": ("-----BEGIN PGP PRIVATE KEY BLOCK-----\n", "=aB3d\n-----END PGP PRIVATE KEY BLOCK-----"),
    "PGP with headers": (
        "-----BEGIN PGP PRIVATE KEY BLOCK-----\nVersion: GnuPG v2\nComment: a key\n",
        "-----END PGP PRIVATE KEY BLOCK-----",
    ),
    "SSH2": ("---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----\nComment: me", "---- END SSH2 ENCRYPTED PRIVATE KEY ----"),
    "OpenVPN": ("-----BEGIN OpenVPN Static key V1-----", "-----END OpenVPN Static key V1-----"),
    "PuTTY": ("Encryption: none\nPrivate-Lines: 3", "Private-MAC: 0"),
}
"""First and last lines of keys of several lines."""


@dataclass(frozen=True, slots=True)
class Sample:
    """A text with invented secrets."""

    text: str
    secrets: tuple[str, ...]


def samples(seed: int) -> dict[str, Sample]:
    """Return a text of each format."""
    chance = random.Random(seed)  # noqa: S311  # reproducible, and not secret
    found = {name: _filled(text, chance) for name, text in FORMATS.items()}
    for name, (first, last) in BLOCKS.items():
        lines = tuple(base64.b64encode(chance.randbytes(48)).decode() for _ in range(3))
        found[f"{name} key"] = Sample("\n".join((first, *lines, last)), lines)
    return found


def _filled(text: str, chance: random.Random) -> Sample:
    secrets: list[str] = []

    def random_text(field: re.Match[str]) -> str:
        alphabet = _ALPHABETS[field[2]]
        while True:
            value = "".join(chance.choices(alphabet, k=int(field[1])))
            if field[2] != "alnum" or _is_usual(value):
                break
        secrets.append(value)
        return value

    filled = _FIELD.sub(random_text, text.replace("Q~~", "Q\0").replace("~", "").replace("\0", "~"))
    return Sample(filled.replace("{{", "{").replace("}}", "}"), tuple(secrets))


def _is_usual(value: str) -> bool:
    """Return whether the value has letters and at least two digits, as nearly all random texts do."""
    return sum(map(str.isdigit, value)) >= min(2, len(value) // 8) and not value.isdigit()
