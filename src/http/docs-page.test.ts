import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { tempDir } from '../../test/support/temp-dir.js'
import { HttpServer, type HttpSettings } from './index.js'

const settings: HttpSettings = {
  service: 'queue',
  host: '127.0.0.1',
  port: 0,
  version: '1.2.3',
  publicUrl: 'http://localhost:8702',
  bodyLimitBytes: 100,
  routes: [],
  onInternalError: () => undefined,
  authenticator: { basic: () => undefined, bearer: () => undefined },
}
const SCRIPT = 'document.title = "drawn"'
const servers: HttpServer[] = []
let base = ''

async function start(docsFolder: string | undefined): Promise<string> {
  const server = new HttpServer({ ...settings, docsFolder })
  servers.push(server)
  await server.start()
  return `http://127.0.0.1:${server.port}`
}

beforeAll(async () => {
  const folder = tempDir()
  writeFileSync(join(folder, 'docs.js.gz'), gzipSync(SCRIPT))
  base = await start(folder)
})
afterAll(() => Promise.all(servers.map((server) => server.stop())))

it('the page loads scripts and styles of this server only, and none that are inline', async () => {
  const response = await fetch(`${base}/docs`)
  const policy = response.headers.get('content-security-policy')
  expect(policy).toContain("script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self';")
  const page = await response.text()
  expect(page).toContain('src="docs/docs.js"')
  expect(page).not.toMatch(/style=|https?:\/\/|<script>|<style>/)
})

it.each(['gzip', 'identity'])('the server sends a file with the encoding %s', async (encoding) => {
  const response = await fetch(`${base}/docs/docs.js`, { headers: { 'accept-encoding': encoding } })
  expect(response.headers.get('content-type')).toBe('text/javascript; charset=utf-8')
  expect(await response.text()).toBe(SCRIPT)
  const etag = response.headers.get('etag') ?? ''
  const again = await fetch(`${base}/docs/docs.js`, { headers: { 'if-none-match': etag } })
  expect(again.status).toBe(304)
})

it('the page has no other files', async () => {
  for (const name of ['', 'docs.js.gz', '..%2fpackage.json', 'constructor']) {
    const response = await fetch(`${base}/docs/${name}`)
    expect([name, response.status]).toEqual([name, 404])
  }
})

it('names the description for programs if it has not been built', async () => {
  const unbuilt = await start(undefined)
  const page = await (await fetch(`${unbuilt}/docs`)).text()
  expect(page).toContain('href="openapi.json"')
  expect(page).not.toContain('<script')
  expect((await fetch(`${unbuilt}/docs/docs.js`)).status).toBe(404)
})
