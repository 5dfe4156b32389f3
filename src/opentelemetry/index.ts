/**
 * OpenTelemetry: exports traces and metrics over OTLP. The only module that knows OpenTelemetry.
 *
 * - Off unless the standard environment variables name an endpoint (`settings.ts`). While it is off, the SDK is not loaded:
 *   `sdk.ts` and its imports are a chunk of their own.
 * - Traces: the port `Tracer` of `telemetry` as spans of the official SDK (`spans.ts`). Parents come from W3C trace context,
 *   which is stored with each message, so a trace goes on after a restart.
 * - Metrics: the same figures as `GET /metrics`, by the same declarations (`metrics.ts`).
 * - The server never waits for a collector. Spans are kept in a bounded buffer; further ones are dropped. The log has one
 *   line for the start of an outage and one for its end. A stop flushes for a bounded time.
 * - Spans contain no payloads, no credentials and no queries of URLs.
 */
import type { Logger } from '../telemetry/index.js'
import type { ExportDeps, Exporting } from './sdk.js'
import { type Environment, exportSettings } from './settings.js'

export type { Environment } from './settings.js'
export type { ExportDeps, Exporting }

/** Starts the export if the environment asks for it; otherwise returns `undefined`. */
export async function openTelemetry(environment: Environment, logger: Logger): Promise<Exporting | undefined> {
  const settings = exportSettings(environment)
  for (const problem of settings.problems) logger.warn('otlp_setting_ignored', { reason: problem })
  if (settings.traces === undefined && settings.metrics === undefined) return undefined
  const { SdkExport } = await import('./sdk.js')
  return new SdkExport(settings, logger, { environment })
}
