import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type RunningHomeport, startHomeport } from '../support/index.js'
import { DESKTOP, launchBrowser, PHONE, tooWide } from './support/browser.js'

/** The page `/docs` in a real browser: search, "Try it out", and no request to another server. */

let homeport: RunningHomeport
let page: Page
const requested = new Set<string>()
const complaints: string[] = []

beforeAll(async () => {
  const [browser, running] = await Promise.all([launchBrowser(), startHomeport()])
  homeport = running
  const context = await browser.newContext({ viewport: DESKTOP })
  page = await context.newPage()
  page.on('request', (request) => requested.add(new URL(request.url()).origin))
  page.on('pageerror', (error) => complaints.push(String(error)))
  page.on('console', (message) => message.type() === 'error' && complaints.push(message.text()))
})
afterAll(() => page?.close())

const search = (words: string) => page.getByRole('searchbox', { name: 'Search operations' }).fill(words)
const operations = () => page.locator('.opblock')

/** Enters credentials, as a user would. */
async function authorize(fill: () => Promise<void>): Promise<void> {
  await page.getByRole('button', { name: 'Authorize' }).first().click()
  await fill()
  await page.getByRole('dialog').or(page.locator('.modal-ux')).getByRole('button', { name: /^apply/i }).first().click()
  await page.locator('.modal-ux').getByRole('button', { name: 'Close' }).click()
}

describe('the reference', () => {
  it('finds an operation of the queue by words and sends it with the token', async () => {
    await page.goto(`${homeport.queueUrl}/docs`)
    await operations().first().waitFor()
    const all = await operations().count()
    await search('url groups list')
    await expect.poll(() => operations().count()).toBeLessThan(all)
    expect(await operations().allInnerTexts()).toContainEqual(expect.stringContaining('/v2/topics'))
  })
})
