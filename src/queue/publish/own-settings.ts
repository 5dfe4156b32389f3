/** Settings that only Homeport has: priority, debounce and singleton keys. */
import { HomeportError } from '../../contract/errors/errors.js'
import { GREATEST_PRIORITY } from '../../contract/queue/priority.js'
import { ownSetting } from '../headers.js'
import type { KeyRule } from '../key-rule.js'
import {
  duration,
  type Headers,
  MAX_DELAY_MS,
  MAX_KEY_LENGTH,
  present,
  refuseSetting,
  written,
} from './setting-values.js'

/** The text of a setting that only Homeport has. */
export const ownText = (headers: Headers, name: string): string | undefined => {
  const text = ownSetting(headers, name)?.trim()
  return text === '' ? undefined : text
}

function ownKey(headers: Headers, name: string): string | undefined {
  const found = ownText(headers, name)
  if (found === undefined) return undefined
  if (found.length > MAX_KEY_LENGTH)
    return refuseSetting(written(name), found, `it is longer than ${MAX_KEY_LENGTH} characters`)
  return CONTROL.test(found) ? refuseSetting(written(name), found, 'it contains a control character') : found
}

/** Control characters. Headers of a batch come as JSON, which may contain them. */
const CONTROL = /[\u0000-\u001f\u007f]/

function ownDelay(headers: Headers, name: string): number | undefined {
  const found = ownText(headers, name)
  const ms = found === undefined ? undefined : duration({ [name]: found }, name)
  if (ms === undefined || ms <= MAX_DELAY_MS) return ms
  throw new HomeportError('setting_limit', { setting: written(name), found: found ?? '', limit: '366d' })
}

/** Reads the priority, seconds. */
export function priority(headers: Headers): number | undefined {
  const found = ownText(headers, 'homeport-priority')
  if (found === undefined) return undefined
  const seconds = /^[+-]?\d{1,9}$/.test(found) ? Number(found) : Number.NaN
  if (Math.abs(seconds) <= GREATEST_PRIORITY) return seconds
  const range = `${-GREATEST_PRIORITY} to ${GREATEST_PRIORITY}`
  return refuseSetting('Homeport-Priority', found, `send a whole number of seconds from ${range}`)
}

/** Reads the debounce or singleton key. */
export function keyRule(headers: Headers): KeyRule | undefined {
  const debounced = ownKey(headers, 'homeport-debounce')
  const single = ownKey(headers, 'homeport-singleton')
  if (debounced === undefined) return single === undefined ? undefined : singletonRule(headers, single)
  if (single !== undefined)
    return refuseSetting('Homeport-Singleton', single, 'a message has a debounce key or a singleton key, not both')
  return debounceRule(headers, debounced)
}

const MODES = ['skip', 'cancel'] as const

function singletonRule(headers: Headers, key: string): KeyRule {
  const found = ownText(headers, 'homeport-singleton-mode')?.toLowerCase() ?? 'skip'
  const mode = MODES.find((known) => known === found)
  return mode
    ? { kind: 'singleton', key, mode }
    : refuseSetting('Homeport-Singleton-Mode', found, 'send skip or cancel')
}

function debounceRule(headers: Headers, key: string): KeyRule {
  const delayMs = ownDelay(headers, 'homeport-debounce-delay')
  if (!delayMs)
    return refuseSetting('Homeport-Debounce-Delay', String(delayMs ?? ''), 'send how long to wait, such as 30s')
  const other = ['upstash-delay', 'upstash-not-before'].find((name) => present(headers, name) !== undefined)
  if (other)
    return refuseSetting(written(other), headers[other] ?? '', 'Homeport-Debounce-Delay says when the message is due')
  const maxDelayMs = ownDelay(headers, 'homeport-debounce-max-delay')
  if (maxDelayMs === undefined) return { kind: 'debounce', key, delayMs }
  if (maxDelayMs >= delayMs) return { kind: 'debounce', key, delayMs, maxDelayMs }
  const found = ownText(headers, 'homeport-debounce-max-delay') ?? ''
  return refuseSetting('Homeport-Debounce-Max-Delay', found, 'send at least Homeport-Debounce-Delay')
}
