import { Anchor, Center, Code, Paper, Stack, Text, Title } from '@mantine/core'
import { useEffect } from 'react'
import type { ConsoleSession } from '../../../../src/contract/console/session.js'
import { Brand } from '../../app/brand.js'
import { SignInForm } from './sign-in-form.js'

/** The sign-in page. It calls back once the console of the signed-in user can be shown. */
export function SignInPage({ onSignedIn }: { onSignedIn: (session: ConsoleSession) => Promise<void> }) {
  useEffect(() => {
    document.title = 'Sign in · Homeport'
  }, [])
  return (
    <Center component="main" mih="100dvh" p="md">
      <Stack w="100%" maw={400} gap="lg">
        <Center>
          <Brand />
        </Center>
        <Paper withBorder p="xl" bg="var(--hp-surface)" style={{ borderColor: 'var(--hp-line)' }}>
          <SignInForm onSignedIn={onSignedIn}>
            <Title order={1}>Sign in</Title>
          </SignInForm>
        </Paper>
        <Text size="sm" c="dimmed" ta="center">
          <Code>homeport env</Code> on the server prints both for the first account. The{' '}
          <Anchor href="/docs" size="sm" underline="always">
            API documentation
          </Anchor>{' '}
          needs no sign-in.
        </Text>
      </Stack>
    </Center>
  )
}
