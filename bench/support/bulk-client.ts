/**
 * Cancels runs of the service at `SERVICE_URL` with `SERVICE_TOKEN`, one request after the other. Their bodies are in
 * the files of the JSON list `REQUESTS`. It is a separate process with little in memory, so that garbage collection
 * does not disturb the measurement. Answers any message with `{cancelled, elapsedMs}`.
 */
import { readFileSync } from 'node:fs'

const { SERVICE_URL: url = '', SERVICE_TOKEN: token = '', REQUESTS: files = '[]' } = process.env
const bodies = (JSON.parse(files) as string[]).map((file) => readFileSync(file))

async function cancelAll(): Promise<{ cancelled: number; elapsedMs: number }> {
  let cancelled = 0
  const started = performance.now()
  for (const body of bodies) {
    const options = { method: 'DELETE', headers: { authorization: `Bearer ${token}` }, body }
    const answer = (await (await fetch(`${url}/v2/workflows/runs`, options)).json()) as { cancelled: number }
    cancelled += answer.cancelled
  }
  return { cancelled, elapsedMs: performance.now() - started }
}

// The first call loads the implementation of `fetch`.
await (await fetch(url)).text()
process.on('message', async () => process.send?.(await cancelAll()))
process.send?.('ready')
process.once('disconnect', () => process.exit(0))
