/** What a user with a keyboard only does, part by part. Each part goes on where the one before ended. */
import type { Page } from 'playwright-core'
import type { RunningHomeport } from '../../support/index.js'
import { heading } from './browser.js'
import type { KeyboardUser } from './keyboard.js'

const dialogOf = (page: Page) => page.getByRole('dialog')
const closed = (page: Page): Promise<void> => dialogOf(page).waitFor({ state: 'detached' })

export async function signsIn(page: Page, user: KeyboardUser, homeport: RunningHomeport): Promise<void> {
  await page.goto(`${homeport.apiUrl}/sign-in`)
  await heading(page, 'Sign in').waitFor()
  await user.fill('E-mail', homeport.credentials.email)
  await user.fill('API key', homeport.credentials.apiKey)
  await user.press('Enter')
  await heading(page, 'Home').waitFor()
}

/** Creates a database, and deletes two of its three keys in the data browser. */
export async function deletesKeys(page: Page, user: KeyboardUser, homeport: RunningHomeport): Promise<void> {
  await user.activate('Databases')
  await heading(page, 'Databases').waitFor()
  await user.activate('Create a database')
  await dialogOf(page).waitFor()
  await user.fill(/^Name/, 'keyboard')
  await user.activate('Create the database')
  await heading(page, 'keyboard').waitFor()
  await closed(page)
  await addKeys(homeport, new URL(page.url()).pathname.split('/').at(-1) ?? '', ['a', 'b', 'c'])
  await user.skipToContent()
  await user.goTo('Overview')
  await user.activate('Data', 'ArrowRight')
  await page.getByRole('treegrid').getByText('c', { exact: true }).waitFor()
  await user.goTo('Keys')
  await user.press('Home', 'Space', 'Shift+ArrowDown', 'Delete')
  await dialogOf(page).waitFor()
  await user.fill(/^Type/, '2')
  await user.press('Enter')
  await closed(page)
}

async function addKeys({ api }: RunningHomeport, databaseId: string, keys: readonly string[]): Promise<void> {
  const { body } = await api('GET', `/v2/redis/database/${databaseId}`)
  const { rest_url, rest_token } = body as { rest_url: string; rest_token: string }
  const headers = { authorization: `Bearer ${rest_token}` }
  for (const key of keys) await fetch(`${rest_url}/set/${key}/1`, { method: 'POST', headers })
}

/** Publishes a message for tomorrow, cancels it, and brings it back. */
export async function cancelsAndUndoes(page: Page, user: KeyboardUser, destination: string): Promise<void> {
  await user.activate('Messages')
  await heading(page, 'Messages').waitFor()
  await user.skipToContent('Shift+Tab')
  await user.activate('Publish a message')
  await dialogOf(page).waitFor()
  await user.fill('Destination', destination)
  await user.activate('More settings')
  await user.fill('Delay', '1d')
  await user.activate('Publish the message')
  await heading(page, /^msg_/).waitFor()
  await closed(page)
  await user.skipToContent()
  await user.activate('Cancel the message')
  await dialogOf(page).waitFor()
  await user.activate('Cancel the message')
  await closed(page)
  await page.getByRole('button', { name: 'Undo the cancel' }).waitFor()
  await user.activate('Undo the cancel')
  await dialogOf(page).waitFor()
  await user.activate('Bring the message back')
  await closed(page)
  await page.getByRole('button', { name: 'Cancel the message' }).waitFor()
}

/** Opens an active run whose step `first` has ended; pauses it, lets it go on, and restarts it from that step. */
export async function pausesAndRestarts(page: Page, user: KeyboardUser, workflowRunId: string): Promise<void> {
  await user.activate('Runs')
  await heading(page, 'Runs').waitFor()
  await page.getByRole('link', { name: workflowRunId }).waitFor()
  await user.skipToContent('Shift+Tab')
  await user.activate(workflowRunId)
  await heading(page, workflowRunId).waitFor()
  await user.activate('Pause')
  await dialogOf(page).waitFor()
  await user.activate('Pause the run')
  await closed(page)
  await page.getByRole('button', { name: 'Resume', exact: true }).waitFor()
  // The button has got the focus back.
  await user.press('Enter')
  await page.getByRole('button', { name: 'Pause', exact: true }).waitFor()
  await page.getByRole('button', { name: 'first' }).waitFor()
  await user.activate(/^first/)
  await user.activate('Restart from here…')
  await dialogOf(page).waitFor()
  await user.press('Escape')
  await closed(page)
  await page.locator('button:focus').getByText('Restart from here…').waitFor()
  await user.press('Enter')
  await dialogOf(page).waitFor()
  await user.activate('Start the new run')
  await page.waitForURL((url) => !url.pathname.endsWith(workflowRunId))
  await closed(page)
}

export async function usesThePalette(page: Page, user: KeyboardUser): Promise<void> {
  await user.press('Control+k')
  // Type at once: text that is typed before the code of the palette is loaded must not be lost.
  await user.type('audit')
  await page.locator('input[aria-label="Search the console"][value="audit"]:focus').waitFor()
  await user.goTo('Search the console')
  await user.press('Enter')
  await heading(page, 'Audit log').waitFor()
}
