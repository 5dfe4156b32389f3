import { beforeAll, expect, it } from 'vitest'
import { type RunningHomeport, startHomeport } from '../support/index.js'
import { heading, PHONE, problemsOf, type SignedIn, signIn, signInAt } from './support/browser.js'
import './support/patience.js'

let homeport: RunningHomeport
let browser: SignedIn

beforeAll(async () => {
  homeport = await startHomeport()
  browser = await signIn(homeport)
})

it.each([
  ['/', 'Home'],
  ['/databases', 'Databases'],
  ['/databases?create=true', 'Databases'],
  ['/usage', 'Usage and cost'],
  ['/team', 'Team'],
  ['/api-keys', 'API keys'],
  ['/audit', 'Audit log'],
])('%s can be used by everybody and fits the window', async (path, title) => {
  await browser.open(path, title)
  expect(await problemsOf(browser.page)).toEqual([])
})

it('the pages fit a phone, where a button opens the navigation', async () => {
  const { page } = browser
  await page.setViewportSize(PHONE)
  await browser.open('/', 'Home')
  await page.getByRole('button', { name: 'Navigation' }).click()
  await page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: 'API keys' }).click()
  await heading(page, 'API keys').waitFor()
  expect(await problemsOf(page)).toEqual([])
  await page.setViewportSize({ width: 1280, height: 800 })
})

it('keys lead to the search, to what keys there are, and past the navigation', async () => {
  const { page } = browser
  await browser.open('/audit', 'Audit log')
  await page.keyboard.press('Tab')
  await page.locator('a:focus').getByText('Skip to the content').waitFor()
  await page.keyboard.press('Enter')
  await page.locator('#content:focus').waitFor()
  await page.keyboard.press('?')
  await page.getByRole('dialog', { name: 'Keyboard shortcuts' }).waitFor()
  await page.keyboard.press('Escape')
  await page.getByRole('dialog').waitFor({ state: 'detached' })
  // As a keyboard without a key of its own for it makes it.
  await page.keyboard.press('Shift+/')
  await page.locator('input[aria-label="Search in the entries"]:focus').waitFor()
})

it('an API key is made, shown once, and deleted after a question', async () => {
  const { page } = browser
  await browser.open('/api-keys', 'API keys')
  await page.getByRole('button', { name: 'Create a key' }).click()
  await page.getByLabel('Name').fill('deploy')
  await page.getByRole('button', { name: 'Create the key' }).click()
  const secret = (await page.getByLabel('The new API key').textContent()) ?? ''
  await page.getByRole('button', { name: 'I have copied it' }).click()
  await expect(isAccepted(secret)).resolves.toBe(true)
  await page.getByRole('button', { name: 'Delete deploy' }).click()
  await page.getByRole('button', { name: 'Delete the key' }).click()
  await page.getByRole('button', { name: 'Delete deploy' }).waitFor({ state: 'detached' })
  await expect(isAccepted(secret)).resolves.toBe(false)
})

async function isAccepted(apiKey: string): Promise<boolean> {
  const basic = Buffer.from(`${homeport.credentials.email}:${apiKey}`).toString('base64')
  return (await fetch(`${homeport.apiUrl}/v2/teams`, { headers: { authorization: `Basic ${basic}` } })).ok
}

it('an address that nobody has leads to a page that says so', async () => {
  await browser.open('/nowhere', 'There is no such page')
})

it('signing out ends the session, and the sign-in leads back to where one was', async () => {
  const { page } = browser
  await browser.open('/audit', 'Audit log')
  await page.getByRole('button', { name: 'Account' }).click()
  await page.getByRole('menuitem', { name: 'Sign out' }).click()
  await heading(page, 'Sign in').waitFor()
  expect(await problemsOf(page)).toEqual([])
  await page.goto('/audit')
  await page.getByLabel('E-mail').fill(homeport.credentials.email)
  await page.getByLabel('API key').first().fill('wrong')
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByText('do not belong together').waitFor()
  await page.getByLabel('API key').first().fill(homeport.credentials.apiKey)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await heading(page, 'Audit log').waitFor()
})

it('signing in to another server on the same host leaves the session here as it is', async () => {
  const { page } = browser
  const other = await startHomeport()
  await signInAt(page, other)
  await browser.open('/audit', 'Audit log')
  await page.goto(`${other.apiUrl}/audit`)
  await heading(page, 'Audit log').waitFor()
})

it('nothing in the pages has failed or was refused by the browser', () => {
  expect(browser.complaints).toEqual([])
})
