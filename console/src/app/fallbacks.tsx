import { Center, Stack, Text, Title } from '@mantine/core'
import type { ErrorComponentProps } from '@tanstack/react-router'
import { TextLink } from '../components/link.js'
import { usePageTitle } from '../components/page.js'
import { ErrorState } from '../components/states.js'
import { CodeNotLoaded } from './lazy-page.js'

/** Shown for a URL that has no page. */
export function NotFoundPage() {
  usePageTitle('Page not found')
  return (
    <Center component="main" mih="60vh" p="lg">
      <Stack align="center" gap="xs">
        <Title order={1}>Page not found</Title>
        <Text c="dimmed">Check the address; the item that it showed may have been deleted.</Text>
        <TextLink to="/">Go to the home page</TextLink>
      </Stack>
    </Center>
  )
}

/** Shown when the console itself cannot be rendered. */
export function ErrorPage(props: ErrorComponentProps) {
  return (
    <Center component="main" mih="60vh" p="lg">
      <PageError {...props} />
    </Center>
  )
}

/** Shown in place of a page that failed to load or to render; the navigation stays. */
export function PageError({ error, reset }: ErrorComponentProps) {
  const known = error instanceof Error ? error : new Error(String(error))
  const retry = async () => {
    if (known instanceof CodeNotLoaded) await known.retry()
    reset()
  }
  return <ErrorState error={known} onRetry={() => void retry()} />
}
