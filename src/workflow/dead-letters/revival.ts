import type { IncomingHttpHeaders } from 'node:http'
import { newId } from '../../base/index.js'
import {
  type CallbackConfig,
  configOf,
  firstAttemptAt,
  labelColumn,
  readSettings,
  type SettingLimits,
  storedConfig,
} from '../../queue/index.js'
import { inRole, markOf } from '../protocol/settings.js'
import { metaOfTrigger } from '../runs/columns.js'
import type { Role } from '../runs/run-state.js'
import { type DeadRun, type Revival, type RunRevision, revised } from '../transactions/runs-revive.js'
import type { DeliveryColumns, NewRun } from '../transactions/runs-rows.js'

/** How a failed run is revived: `resume` continues its list, `restart` begins again from its payload. */
export type RevivalKind = 'resume' | 'restart'

/** Settings that a request overrides in the runs that it revives. */
export interface Overrides {
  readonly revision: RunRevision
  readonly failureCallback?: CallbackConfig
  /** Unix milliseconds. */
  readonly dueAt: number
}

/** Picks the headers of a request that are settings. */
export function settingsIn(headers: IncomingHttpHeaders): Record<string, string> {
  const texts: Record<string, string> = {}
  for (const [name, value] of Object.entries(headers)) {
    if (name.startsWith('upstash-') && typeof value === 'string') texts[name] = value
  }
  return texts
}

/**
 * Parses the settings that the headers of a request override (reference workflow 4.13).
 * @throws HomeportError if a setting is invalid.
 */
export function overridesOf(headers: IncomingHttpHeaders, now: number, limits: SettingLimits): Overrides {
  const settings = readSettings(settingsIn(headers), now, limits)
  const { callback: _, failureCallback, labels, retries, flowKey, ...own } = settings
  const revision: RunRevision = {
    config: { ...configOf({ ...own, labels }) },
    headers: labels.length > 0 ? { 'Upstash-Label': [labels.join(',')] } : {},
    ...(retries !== undefined && { maxRetries: retries }),
    ...(flowKey !== undefined && { flowKey }),
    ...(labels.length > 0 && { labels: labelColumn(labels) }),
  }
  return { revision, ...(failureCallback && { failureCallback }), dueAt: firstAttemptAt(settings, now) }
}

/** Plans the new run that continues a failed one. */
export function revivalOf(kind: RevivalKind, dead: DeadRun, overrides: Overrides, now: number): Revival {
  const { rule: _, ...before } = metaOfTrigger(dead.meta)
  const delivery = revised(before.delivery, overrides.revision)
  const { failureCallback = before.failureCallback } = overrides
  const meta = JSON.stringify({ ...before, delivery, ...(failureCallback && { failureCallback }) })
  const shared = { seq: dead.seq, run: newRunOf(dead, delivery, now), meta }
  if (kind === 'resume') return { ...shared, kind, revision: overrides.revision }
  return { ...shared, kind, messageId: newId('msg_', now), opening: inRole(delivery, openingRole(dead, delivery)) }
}

/** The row of a new run that replaces another one. */
export function newRunOf(dead: Omit<DeadRun, 'meta' | 'reason'>, delivery: DeliveryColumns, now: number): NewRun {
  const { url, host, path, contact, caller_ip } = dead
  const { labels, flow_key = null } = delivery
  return { run_id: newId('wfr_', now), url, host, path, contact, caller_ip, labels, flow_key }
}

/** The role of the first delivery. It must verify the same as when the original run was triggered. */
export function openingRole(
  { contact, reason }: Pick<DeadRun, 'contact' | 'reason'>,
  { config }: DeliveryColumns,
): Role {
  if (contact === 'unknown') return 'contact'
  if (reason === 'unknown-sdk') return 'untried'
  const isModern = markOf(storedConfig(config)).lazy === true
  return isModern || reason === 'not-a-workflow' ? 'first' : 'step'
}
