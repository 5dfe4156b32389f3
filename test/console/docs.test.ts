import type { Page } from 'playwright-core'
import { beforeAll, describe, expect, it } from 'vitest'
import { type RunningHomeport, startHomeport } from '../support/index.js'
import { launchBrowser, newContext } from './support/browser.js'

/** The page `/docs` in a real browser: search, "Try it out", and no request to another server. */

let homeport: RunningHomeport
let page: Page
const requested = new Set<string>()
const complaints: string[] = []

beforeAll(async () => {
  const [browser, running] = await Promise.all([launchBrowser(), startHomeport()])
  homeport = running
  page = await (await newContext(browser, homeport.apiUrl)).newPage()
  page.on('request', (request) => requested.add(new URL(request.url()).origin))
  page.on('pageerror', (error) => complaints.push(String(error)))
  page.on('console', (message) => message.type() === 'error' && complaints.push(message.text()))
})

/** Opens the page of a listener by a name that differs from its public URL. */
async function open(url: string): Promise<void> {
  await page.goto(`${url.replace('127.0.0.1', 'localhost')}/docs`)
  await page.locator('.opblock').first().waitFor()
}

async function authorize(fields: Readonly<Record<string, string>>): Promise<void> {
  await page.locator('.auth-wrapper').getByRole('button').first().click()
  for (const [name, value] of Object.entries(fields)) await page.locator(`#auth-${name}`).fill(value)
  await page.getByRole('button', { name: 'Apply credentials' }).click()
  await page.getByRole('button', { name: 'Close' }).click()
}

/** Finds the only operation for some words, sends it, and answers status and body. */
async function tryOut(words: string, path: string): Promise<string | null> {
  await page.getByRole('searchbox', { name: 'Search operations' }).fill(words)
  const operations = page.locator('.opblock-summary-control')
  await expect.poll(() => operations.allInnerTexts()).toEqual([expect.stringContaining(path)])
  await operations.click()
  await page.getByRole('button', { name: 'Try it out' }).click()
  await page.getByRole('button', { name: 'Execute' }).click()
  return page.locator('.live-responses-table .response').first().textContent()
}

describe('the reference', () => {
  it('finds an operation of the queue and sends it with the token', async () => {
    await open(homeport.queueUrl)
    await authorize({ 'bearer-value': homeport.credentials.queueToken })
    expect(await tryOut('signing read get', '/v2/keys')).toContain(homeport.credentials.currentSigningKey)
  })

  it('shows the settings of a message as headers', async () => {
    await page.getByRole('searchbox', { name: 'Search operations' }).fill('publishMessage')
    await page.locator('.opblock-summary-control').click()
    const row = page.locator('tr[data-param-name="Upstash-Retries"]')
    expect(await row.textContent()).toMatch(/integer[\s\S]*Most retries after the first attempt/)
  })

  it('finds an operation of the management API and sends it with e-mail and API key', async () => {
    await open(homeport.apiUrl)
    const { email, apiKey } = homeport.credentials
    await authorize({ 'basic-username': email, 'basic-password': apiKey })
    expect(await tryOut('list databases credentials', '/v2/redis/databases')).toMatch(/^200.*\[\]/s)
  })

  it('follows the colour scheme of the system', async () => {
    const isDark = () => page.evaluate("document.documentElement.classList.contains('dark-mode')")
    await page.emulateMedia({ colorScheme: 'dark' })
    await expect.poll(isDark).toBe(true)
    await page.emulateMedia({ colorScheme: 'light' })
    await expect.poll(isDark).toBe(false)
  })

  it('asks no other server, and the browser complains about nothing', () => {
    const own = [homeport.queueUrl, homeport.apiUrl].map((url) => url.replace('127.0.0.1', 'localhost'))
    expect([...requested].sort()).toEqual(own.sort())
    expect(complaints).toEqual([])
  })
})
