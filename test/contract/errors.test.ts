import { describe, expect, it } from 'vitest'
import { dataPlaneErrors } from '../../src/contract/errors/data-plane.js'
import { ERRORS, type ErrorCode, type ErrorEntry } from '../../src/contract/errors/errors.js'
import { declaredEndpoints } from './declared.js'

/** Rules for every entry of the error catalogue. */

const endpoints = await declaredEndpoints()
const codes = Object.keys(ERRORS) as ErrorCode[]

/** Errors whose text is written where they are thrown. */
const FREE_TEXTS: readonly string[] = [
  'invalid_request',
  'cli_failed',
  'cli_misused',
  'cli_not_found',
  'cli_no_credentials',
  'server_refused',
  'command_malformed',
  'step_refused',
  'store_copy_refused',
]
/** Errors of the listeners, not of an operation. */
const OF_LISTENERS: readonly string[] = [
  'token_scope',
  'unauthorized',
  'readonly_api_key',
  'unknown_route',
  'wrong_method',
  'host_not_served',
  'body_too_complex',
  'headers_too_large',
  'too_many_heavy_requests',
  'internal',
]
/** Errors of the command line, which no request gets. */
const OF_COMMANDS: readonly string[] = [
  'cli_misused',
  'cli_not_found',
  'cli_no_credentials',
  'store_copy_refused',
  'service_backup_unusable',
  'service_restore_refused',
]

const STATUSES = [400, 401, 403, 404, 405, 409, 412, 413, 421, 422, 429, 431, 500, 502, 503]

/** Details that the texts calculate with. */
const NUMBERS: Readonly<Record<string, number>> = { aheadMs: 3_000, resetAtSeconds: 1_764_000_000 }

/** Details of any shape: a list of one string works as a string and as a list. */
const details = new Proxy({}, { get: (_, name) => NUMBERS[String(name)] ?? ['something'] })

const textOf = (code: ErrorCode): string => String((ERRORS[code].text as (details: object) => unknown)(details))

describe.each(codes)('%s', (code) => {
  const entry: ErrorEntry<never> = ERRORS[code]

  it('has a status that clients know, and a retry time only with 429 or 503', () => {
    expect(STATUSES).toContain(entry.status)
    if (entry.retry) expect([429, 503]).toContain(entry.status)
  })

  it('is a readable text about the request, not about the program', () => {
    const text = textOf(code)
    expect(text).not.toMatch(/undefined|\[object|NaN|\n|\bat \w+ \(|\/(home|tmp|usr|work)\//)
    expect(text).not.toMatch(/upstash\.com|docs\.|https?:\/\/\w/)
    expect(text.length).toBeLessThan(400)
  })
})

it.each(codes.filter((code) => !FREE_TEXTS.includes(code) && !(code in dataPlaneErrors)))(
  '%s has whole sentences: what is wrong, then what to do',
  (code) => {
    const text = textOf(code)
    expect(text).toMatch(/\.$/)
    expect(text.split(/[.:;] /).length).toBeGreaterThan(1)
  },
)

it.each(codes.filter((code) => code in dataPlaneErrors))('%s begins with a word that Redis clients know', (code) => {
  expect(ERRORS[code]).toMatchObject({ resp: expect.stringMatching(/^[A-Z]+$/) })
})

it('every error that an operation declares is in the catalogue, and none is declared twice', () => {
  for (const { id, errors } of endpoints) {
    expect(codes, id).toEqual(expect.arrayContaining([...errors]))
    expect(errors, id).toEqual([...new Set(errors)])
  }
})

it('every operation that may read a backup from object storage declares the errors of that', () => {
  const ofStorage = ['sealed_unusable', 'sealed_key_missing', 'object_missing', 'object_storage_failed']
  for (const id of ['restoreBackup', 'downloadBackup', 'recoverDatabase'])
    expect(endpoints.find((endpoint) => endpoint.id === id)?.errors, id).toEqual(expect.arrayContaining(ofStorage))
})

it('every error that callers of the APIs can cause is declared by an operation, so that the docs list it', () => {
  const declared = new Set<string>(endpoints.flatMap(({ errors }) => [...errors]))
  const exempt = [...OF_LISTENERS, ...OF_COMMANDS, ...Object.keys(dataPlaneErrors)]
  const ofCallers = codes.filter((code) => ERRORS[code].status < 500)
  expect(ofCallers.filter((code) => !declared.has(code) && !exempt.includes(code))).toEqual([])
})
