/**
 * Takes a screenshot of every page for `docs/screenshots/`, or of those that the arguments name, from a server with example
 * data on every page.
 */
import { mkdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { Page } from 'playwright-core'
import { cleanup, type RunningHomeport, startHomeport } from '../support/index.js'
import { heading, type SignedIn, signIn } from './support/browser.js'
import { furnish } from './support/furnish.js'
import { furnishQueue } from './support/furnish-queue.js'
import { type FurnishedRuns, furnishWorkflows } from './support/furnish-workflows.js'

const FOLDER = fileURLToPath(new URL('../../docs/screenshots/', import.meta.url))

/** A page to take a screenshot of. */
interface Shot {
  readonly name: string
  readonly path: string
  readonly title: string
  /** Steps on the page before the screenshot. */
  readonly before?: (page: Page) => Promise<unknown>
}

function shotsOfQueue(messageId: string): Shot[] {
  return [
    { name: 'messages', path: '/messages', title: 'Messages' },
    { name: 'message-publish', path: '/messages?publish=true', title: 'Messages' },
    { name: 'message', path: `/messages/${messageId}`, title: messageId },
    {
      name: 'dead-letters',
      path: '/dead-letters',
      title: 'Dead letters',
      before: (page) => page.getByRole('cell', { name: 'mail', exact: true }).click(),
    },
    { name: 'queues', path: '/queues', title: 'Queues' },
    {
      name: 'schedules',
      path: '/schedules',
      title: 'Schedules',
      before: (page) => page.getByRole('button', { name: /^[\d.:]+\/api\/report$/ }).click(),
    },
    { name: 'url-groups', path: '/url-groups', title: 'URL groups' },
    { name: 'flow-control', path: '/flow-control', title: 'Flow control' },
    { name: 'signing-keys', path: '/signing-keys', title: 'Signing keys' },
  ]
}

function shotsOfWorkflows({ doneId, waitingId, failedId, actionId }: FurnishedRuns): Shot[] {
  const look = (page: Page) => page.getByRole('button', { name: 'Check the matches' }).click()
  return [
    { name: 'runs', path: '/runs', title: 'Runs' },
    { name: 'run-trigger', path: '/runs?trigger=true', title: 'Runs' },
    { name: 'run', path: `/runs/${doneId}`, title: doneId },
    { name: 'run-waits', path: `/runs/${waitingId}`, title: waitingId },
    { name: 'run-failed', path: `/runs/${failedId}`, title: failedId },
    { name: 'failed-runs', path: '/runs/dead-letters', title: 'Failed runs' },
    { name: 'events', path: '/events?event=order-7%2Fapproved', title: 'Events' },
    { name: 'bulk-actions', path: '/bulk-actions', title: 'Bulk actions' },
    { name: 'bulk-action', path: `/bulk-actions/${actionId}`, title: 'Cancel runs' },
    { name: 'bulk-choose', path: '/bulk-actions/new?label=weekly', title: 'New bulk action' },
    { name: 'bulk-check', path: '/bulk-actions/new?label=weekly', title: 'New bulk action', before: look },
    {
      name: 'bulk-letters',
      path: '/bulk-actions/new?kind=retryDeadLetters&label=mail',
      title: 'New bulk action',
      before: look,
    },
  ]
}

function shotsOf(databaseId: string): Shot[] {
  const tab = (name: string) => ({ path: `/databases/${databaseId}?tab=${name}`, title: 'shop' })
  return [
    { name: 'home', path: '/', title: 'Home' },
    { name: 'databases', path: '/databases', title: 'Databases' },
    { name: 'database-create', path: '/databases?create=true', title: 'Databases' },
    { name: 'database', ...tab('overview') },
    { name: 'database-usage', ...tab('usage') },
    {
      name: 'database-data',
      ...tab('data'),
      before: async (page) => {
        await page.getByRole('button', { name: 'Show as a tree' }).click()
        await page.getByRole('button', { name: 'user:', exact: true }).click()
        await page.getByRole('checkbox', { name: 'Select user:2', exact: true }).click()
        await page.getByRole('button', { name: 'user:1', exact: true }).click()
        await page.getByRole('row', { name: /user:1 hash/ }).waitFor()
      },
    },
    { name: 'database-users', ...tab('users') },
    {
      name: 'database-user',
      ...tab('users'),
      before: (page) => page.getByRole('button', { name: 'importer', exact: true }).click(),
    },
    { name: 'database-backups', ...tab('backups') },
    { name: 'database-settings', ...tab('settings') },
    { name: 'usage', path: '/usage', title: 'Usage and cost' },
    { name: 'team', path: '/team', title: 'Team' },
    { name: 'api-keys', path: '/api-keys', title: 'API keys' },
    { name: 'alerts', path: '/alerts', title: 'Alerts' },
    { name: 'audit', path: '/audit', title: 'Audit log' },
  ]
}

async function take(browser: SignedIn, { name, path, title, before }: Shot): Promise<void> {
  const { page } = browser
  await browser.load(path, title)
  await before?.(page)
  await page.waitForLoadState('networkidle')
  await page.getByRole('status', { name: 'Loading' }).first().waitFor({ state: 'detached' })
  await page.screenshot({ path: `${FOLDER}${name}.png`, animations: 'disabled' })
  console.log(`docs/screenshots/${name}.png`)
}

async function takeSignIn({ context }: SignedIn): Promise<void> {
  const page = await (context.browser() ?? fail()).newPage({ viewport: { width: 1280, height: 800 } })
  await page.goto(`${origin}/sign-in`)
  await heading(page, 'Sign in').waitFor()
  await page.screenshot({ path: `${FOLDER}sign-in.png` })
}

function fail(): never {
  throw new Error('the browser has gone')
}

let origin = ''

/** The names of the screenshots to take; none: all. */
const WANTED = process.argv.slice(2)

const isWanted = (name: string): boolean => WANTED.length === 0 || WANTED.includes(name)

async function shotsOfTheRest(homeport: RunningHomeport): Promise<Shot[]> {
  const messageId = await furnishQueue(homeport)
  return [...shotsOfQueue(messageId), ...shotsOfWorkflows(await furnishWorkflows(homeport))]
}

async function main(): Promise<void> {
  mkdirSync(FOLDER, { recursive: true })
  const homeport: RunningHomeport = await startHomeport()
  origin = homeport.apiUrl
  const databases = shotsOf(await furnish(homeport))
  const isOfDatabases = WANTED.length > 0 && WANTED.every((name) => databases.some((shot) => shot.name === name))
  const shots = isOfDatabases ? databases : [...databases, ...(await shotsOfTheRest(homeport))]
  const browser = await signIn(homeport)
  try {
    if (isWanted('sign-in')) await takeSignIn(browser)
    for (const shot of shots) if (isWanted(shot.name)) await take(browser, shot)
  } finally {
    await browser.context.browser()?.close()
  }
}

try {
  await main()
} finally {
  await cleanup()
}
