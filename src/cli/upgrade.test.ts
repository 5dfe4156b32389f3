import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, it, onTestFinished } from 'vitest'
import packageFile from '../../package.json' with { type: 'json' }
import { runCli } from './index.js'

async function upgrade(registry: string) {
  const [out, err]: [string[], string[]] = [[], []]
  const io = { out: (text: string) => void out.push(text), err: (text: string) => void err.push(text) }
  const code = await runCli(['upgrade', '--check', '--registry', registry], io)
  return { code, stdout: out.join(''), stderr: err.join('') }
}

/** An npm registry that knows one version of the package. */
async function startRegistry(answer: object) {
  const asked: unknown[] = []
  const registry = createServer((request, response) => {
    asked.push([request.method, request.url])
    response.end(JSON.stringify(answer))
  })
  await new Promise<void>((resolve) => registry.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void registry.close())
  return { asked, url: `http://127.0.0.1:${(registry.address() as AddressInfo).port}/` }
}

it.each([
  ['99.0.0', `Homeport 99.0.0 is available; ${packageFile.version} is installed.`],
  ['0.0.1', `Homeport ${packageFile.version} is up to date (newest version: 0.0.1).`],
  [`${packageFile.version}-beta.1`, 'is up to date'],
])('`homeport upgrade` compares the installed version with %s', async (version, said) => {
  const { url, asked } = await startRegistry({ version, product: packageFile.product })
  const { code, stdout } = await upgrade(url)
  expect([code, stdout]).toEqual([0, expect.stringContaining(said)])
  expect(asked).toEqual([['GET', `/${packageFile.name}/latest`]])
})

it('`homeport upgrade` refuses another program as a version, and says when the registry does not answer', async () => {
  const { url } = await startRegistry({ name: packageFile.name, version: '99.0.0' })
  const other = await upgrade(url)
  expect([other.code, other.stdout]).toEqual([1, ''])
  expect(other.stderr).toContain('is another program with the same name')
  const offline = await upgrade('http://127.0.0.1:1')
  expect(offline.code).toBe(1)
  expect(offline.stderr).toContain(`The installed version is ${packageFile.version}; check again when`)
})
