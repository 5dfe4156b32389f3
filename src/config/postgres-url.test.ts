import { expect, it } from 'vitest'
import { parsePostgresUrl } from './postgres-url.js'

it.each([
  ['postgres://u:p@db/h', ['postgres://u:p@db/h'], 'postgres://db/h'],
  ['postgresql://db:5432/h', ['postgresql://db:5432/h'], 'postgres://db:5432/h'],
  ['postgres://u:p@a:1,b:2/h', ['postgres://u:p@a:1/h', 'postgres://u:p@b:2/h'], 'postgres://a:1,b:2/h'],
  [
    'postgres://u:p@[::1]:1,[fd00::2]/h?target_session_attrs=read-write',
    ['postgres://u:p@[::1]:1/h', 'postgres://u:p@[fd00::2]/h'],
    'postgres://[::1]:1,[fd00::2]/h',
  ],
  [
    'postgres://a,b/h?sslmode=verify-full&target_session_attrs=primary&sslrootcert=/etc/ca%20x.pem',
    [
      'postgres://a/h?sslmode=verify-full&sslrootcert=/etc/ca%20x.pem',
      'postgres://b/h?sslmode=verify-full&sslrootcert=/etc/ca%20x.pem',
    ],
    'postgres://a,b/h',
  ],
  ['postgres://u:p%40%2C@a/h', ['postgres://u:p%40%2C@a/h'], 'postgres://a/h'],
  ['postgres://%2Fvar%2Frun/h', ['postgres://%2Fvar%2Frun/h'], 'postgres://%2Fvar%2Frun/h'],
  ['postgres://u@localhost/h?host=/tmp', ['postgres://u@localhost/h?host=/tmp'], 'postgres://localhost/h'],
])('the parser splits %s', (url, urls, place) => {
  expect(parsePostgresUrl(url)).toEqual({ urls, place })
})

it.each([
  'postgres://u:S3cret@a',
  'postgres://u:S3cret@a/',
  'postgres://u:S3cret@/h',
  'postgres://u:S3cret@a,/h',
  'postgres://u:S3cret@a:0/h',
  'postgres://u:S3cret@a:65536,b/h',
  'postgres://u:S3cret@a:x,b/h',
  'postgres://u:S3cret@a:1:2/h',
  'postgres://u:S3cret@@:a/h',
  `postgres://u:S3cret@${Array.from({ length: 17 }, (_, index) => `a${index}`)}/h`,
  `postgres://u:S3cret@${'a'.repeat(9_000)}/h`,
  'postgres://u:S3cret@a/h?target_session_attrs=standby',
  'postgres://u:S3cret@a/h?host=b,c',
  'mysql://u:S3cret@a/h',
])('the parser refuses %s without showing the password', (url) => {
  const result = parsePostgresUrl(url)
  expect(result).toMatchObject({ problem: expect.any(String) })
  expect(JSON.stringify(result)).not.toContain('S3cret')
})
