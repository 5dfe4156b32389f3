const GENEROUS = 1_000_000_000

/** Every limit of a database, set so high that none is reached. */
export const GATEWAY_LIMITS = {
  maxCommandsPerSecond: GENEROUS,
  maxRequestsPerMonth: Number.MAX_SAFE_INTEGER,
  maxBytesPerMonth: Number.MAX_SAFE_INTEGER,
  maxEntryBytes: 200 * 2 ** 20,
  maxRequestBytes: 200 * 2 ** 20,
  maxDataBytes: 2 ** 30,
  idleTimeoutMs: 6 * 60 * 60 * 1000,
  scriptTimeoutMs: 250,
  scriptMsPerMinute: 10_000,
  allowedIpRanges: ['127.0.0.0/8'],
}
